"""torch.distributed.checkpoint under gloo: ranks by the environment, the data split between them, so that one rank and two give one curve but for rounding.

TEST_FAIL=<rank> has that rank fail inside its checkpoint.
"""

import os
from pathlib import Path

import skyplan_job
from common import STEPS, batch, seeded, tell_loss

torch = seeded()
import torch.distributed as ranks  # noqa: E402
from torch.distributed.tensor import DTensor, Shard, distribute_tensor, init_device_mesh  # noqa: E402

ranks.init_process_group("gloo")
rank, world = ranks.get_rank(), ranks.get_world_size()
mesh = init_device_mesh("cpu", (world,))
made = torch.Generator().manual_seed(3)
weight = torch.randn(8, 1, generator=made)
sharded = distribute_tensor(weight, mesh, [Shard(0)])
momentum = distribute_tensor(torch.zeros(8, 1), mesh, [Shard(0)])


def state(step):
    return {"weight": sharded, "momentum": momentum, "step": step, "nested": {"lr": 0.05, "name": "sgd"}}


loaded = state(0)
if skyplan_job.load_distributed(loaded):
    assert loaded["step"] == skyplan_job.resume_step()
    assert loaded["nested"]["name"] == "sgd"

for step in range(skyplan_job.resume_step() + 1, STEPS + 1):
    x, y = batch(torch, step)
    full = sharded.full_tensor().requires_grad_()
    loss = (x @ full - y).square().mean()
    loss.backward()
    gradient = distribute_tensor(full.grad, mesh, [Shard(0)])
    momentum.mul_(0.9).add_(gradient)
    sharded.sub_(momentum * 0.05)
    if rank == 0:
        tell_loss(step, loss.item())
    skyplan_job.report(step, loss=loss)
    if skyplan_job.should_checkpoint(everywhere=True):
        if os.environ.get("TEST_FAIL"):
            try:
                with skyplan_job.checkpoint(step, everywhere=True) as folder:
                    folder.joinpath("missing" if rank == int(os.environ["TEST_FAIL"]) else ".", "x").write_text("x")
            except (OSError, skyplan_job.CheckpointError) as error:
                Path(os.environ["TEST_CURVE"] + f".{rank}").write_text(f"{type(error).__name__}: {error}")
        skyplan_job.save_distributed(state(step), step)
    if skyplan_job.should_stop(everywhere=True):
        break
assert DTensor
ranks.destroy_process_group()
