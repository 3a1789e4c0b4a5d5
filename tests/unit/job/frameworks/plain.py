"""A loop of one's own: checkpoints every 5 steps and when asked."""

import skyplan_job
from common import STEPS, batch, net, seeded, tell_loss

torch = seeded()
model = net(torch)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
found = skyplan_job.resume_from()
if found:
    state = skyplan_job.load(found / "state.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["rng"])

for step in range(skyplan_job.resume_step() + 1, STEPS + 1):
    x, y = batch(torch, step)
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    tell_loss(step, loss.item())
    skyplan_job.report(step, loss=loss)
    if step % 5 == 0 or skyplan_job.should_checkpoint():
        with skyplan_job.checkpoint(step, framework="torch") as folder:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
            torch.save(state, folder / "state.pt")
    if skyplan_job.should_stop():
        break
