"""What torchrun, Gloo and NCCL must be told to go through the tunnel.  Text only.

NCCL cannot see how fast a tunnel is (no PCI device): 4 threads of 4 sockets each are what it takes on its own for a known 100 Gb/s card of AWS or GCP.
Gloo takes one real interface name, NCCL an exact match with `=`.  `KEY=value` without quotes: systemd, `docker --env-file` and a shell all read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import CONFIG, AgentError

if TYPE_CHECKING:
    from .config import Peer, TunnelConfig


def variables(config: TunnelConfig, members: tuple[Peer, ...]) -> dict[str, str]:
    """Name -> value.  `members` are the other nodes."""
    addresses = {p.name: p.tunnel_address for p in members}
    addresses[config.name] = config.tunnel_address
    if config.master not in addresses:
        raise AgentError(CONFIG, f"rank 0's node {config.master} is none of {', '.join(sorted(addresses))}")
    return {
        "MASTER_ADDR": addresses[config.master],
        "SKYPLAN_TUNNEL_ADDRESS": config.tunnel_address,
        "SKYPLAN_TUNNEL_INTERFACE": config.interface,
        "GLOO_SOCKET_IFNAME": config.interface,
        "NCCL_SOCKET_IFNAME": f"={config.interface}",
        "NCCL_IB_DISABLE": "1",
        "NCCL_NET": "Socket",
        "NCCL_SOCKET_FAMILY": "AF_INET",
        "NCCL_SOCKET_NTHREADS": "4",
        "NCCL_NSOCKS_PERTHREAD": "4",
    }


def text(values: dict[str, str]) -> str:
    """The environment file."""
    return "".join(f"{name}={value}\n" for name, value in values.items())
