"""Hugging Face Trainer on a tiny model of its own library; saves only when asked."""

import os

import skyplan_job
from common import STEPS, seeded, tell_loss

torch = seeded()
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments  # noqa: E402

config = LlamaConfig(
    vocab_size=64,
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    attention_dropout=0.1,
)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, nth):
        made = torch.Generator().manual_seed(nth)
        ids = torch.randint(0, 64, (12,), generator=made)
        return {"input_ids": ids, "labels": ids}


class Curve(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            tell_loss(state.global_step, logs["loss"])


arguments = TrainingArguments(
    output_dir=os.environ["TEST_OUTPUT"],
    max_steps=STEPS,
    per_device_train_batch_size=4,
    logging_steps=1,
    save_strategy="no",
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
    seed=7,
    lr_scheduler_type="linear",
)
model = LlamaForCausalLM(config)
trainer = Trainer(
    model=model, args=arguments, train_dataset=Rows(), callbacks=[Curve(), skyplan_job.transformers_callback()]
)
found = skyplan_job.resume_from()
trainer.train(resume_from_checkpoint=str(found) if found else None)
