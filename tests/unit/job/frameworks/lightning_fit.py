"""A Lightning fit of a tiny module; checkpoints when asked."""

import os

import skyplan_job
from common import STEPS, seeded, tell_loss

torch = seeded()
import lightning.pytorch as pl  # noqa: E402


class Loader:
    """Ten batches an epoch.  It says how far it is: Lightning goes on within an epoch only with a loader that does (its own kind begins the epoch anew)."""

    def __init__(self):
        self.at = 0

    def __len__(self):
        return 10

    def __iter__(self):
        while self.at < 10:
            self.at += 1
            made = torch.Generator().manual_seed(self.at)
            x = torch.randn(4, 8, generator=made)
            yield x, (x.sum(dim=1, keepdim=True) * 0.5).sin()
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def training_step(self, given, nth):
        x, y = given
        loss = (self.net(x) - y).square().mean()
        self.log("loss", loss)
        tell_loss(self.trainer.global_step + 1, loss.item())
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1)}


trainer = pl.Trainer(
    max_steps=STEPS,
    accelerator="cpu",
    devices=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    default_root_dir=os.environ["TEST_OUTPUT"],
    callbacks=[skyplan_job.lightning_callback()],
)
trainer.fit(Module(), Loader(), **skyplan_job.lightning_resume())
