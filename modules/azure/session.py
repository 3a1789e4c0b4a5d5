"""Whether people can be given a shell on an Azure node without an open port.  Pure: planning asks it and starts no CDK."""

from __future__ import annotations


def session_supported() -> str:
    """Why `access: session` cannot be rendered; "" once it can.

    What Azure has: Bastion and `az ssh` (Entra sign-in) end at port 22 of the node, Bastion moreover needs a subnet and an hourly gateway in the network
    owner's network; run-command and the serial console are rights of people on the control plane, need extensions or a password, and are
    more than a session.  (Microsoft Learn: Bastion NSG rules, Entra login for Linux, serial console; 2024-2026.)
    """
    return (
        "Azure has no shell without an open port: Bastion and `az ssh` need port 22 of the node, the serial console needs a password, "
        "and run-command is a right to change the machine"
    )
