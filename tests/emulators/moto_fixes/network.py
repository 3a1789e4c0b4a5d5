"""Subnets that are private unless said, deletions refused while something is inside, descriptions of rules between groups, and
unknown actions answered at once.

An unknown action is an HTTP 500 in moto, which the AWS provider retries for minutes; here it is a 400 that names the action.
"""

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import DependencyViolationError, EC2ClientError
from moto.ec2.models.nat_gateways import NatGatewayBackend
from moto.ec2.models.security_groups import SecurityGroupBackend, SecurityGroupRule
from moto.ec2.models.subnets import SubnetBackend
from moto.ec2.responses import EC2Response

original_create_subnet = SubnetBackend.create_subnet
original_delete_subnet = SubnetBackend.delete_subnet
original_delete_nat_gateway = NatGatewayBackend.delete_nat_gateway
original_delete_group = SecurityGroupBackend.delete_security_group
original_call_action = EC2Response.call_action


def _create_subnet(self: Any, vpc_id: str, *arguments: Any, **named: Any) -> Any:
    """moto makes the first subnet of a zone a default one, with public addresses, in whatever VPC."""
    subnet = original_create_subnet(self, vpc_id, *arguments, **named)
    if not self.get_vpc(vpc_id).is_default:
        subnet.default_for_az = subnet.map_public_ip_on_launch = False
    return subnet


def _delete_subnet(self: Any, subnet_id: str) -> Any:
    if any(i.subnet.id == subnet_id for i in self.enis.values()):
        raise DependencyViolationError(f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
    return original_delete_subnet(self, subnet_id)


def _delete_nat_gateway(self: Any, nat_gateway_id: str) -> Any:
    """A NAT gateway takes its interface with it and lets its address go."""
    gateway = original_delete_nat_gateway(self, nat_gateway_id)
    interface = self.enis.pop(gateway._eni.id, None)
    for address in self.addresses:
        if interface is not None and address.eni is interface:
            address.eni = address.instance = address.association_id = None
    return gateway


def _delete_group(self: Any, name: str | None = None, group_id: str | None = None) -> Any:
    if group_id and any(group_id == g.id for i in self.enis.values() for g in i.group_set):
        raise DependencyViolationError(f"resource {group_id} has a dependent object")
    return original_delete_group(self, name, group_id)


def _description(self: Any) -> str | None:
    return self.ip_range.get("Description") or self.source_group.get("Description")


def _call_action(self: Any) -> Any:
    try:
        return original_call_action(self)
    except NotImplementedError:
        action = self._get_action()
        failure = EC2ClientError("InvalidAction", f"The action {action} is not valid for this emulator.")
        return self.serialized(ActionResult(failure))


def install() -> None:
    SubnetBackend.create_subnet = _create_subnet
    SubnetBackend.delete_subnet = _delete_subnet
    NatGatewayBackend.delete_nat_gateway = _delete_nat_gateway
    SecurityGroupBackend.delete_security_group = _delete_group
    SecurityGroupRule.description = property(_description)
    EC2Response.call_action = _call_action
