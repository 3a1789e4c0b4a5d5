"""Codes that nothing raises now, each with its reason; a number is never given to another meaning."""

from __future__ import annotations

RESERVED: dict[str, str] = {
    "SKY-RUN-506": "set aside for tunnels; what the rendezvous refuses it answers and logs in words of its own",
    "SKY-RUN-507": "set aside for tunnels; nodes do not probe the size of packets, their MTU is chosen to fit",
    "SKY-RUN-513": "set aside for leases; an agent tells its log that one is not renewed, and no event of it is sent",
    "SKY-RUN-514": "set aside for leases, as SKY-RUN-513: the job is asked for a checkpoint, and no event of it is sent",
}
