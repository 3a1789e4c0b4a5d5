"""Public image parameters (`/aws/service/deeplearning/ami/…/ami-id` and alike), each with an image behind it.

moto knows Amazon Linux and ECS only.  The id is a digest of region and parameter, so it is the same in every run.
"""

import hashlib
import re
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.ec2.models.amis import Ami
from moto.ssm.models import Parameter, ParameterDict

PUBLIC_IMAGE = re.compile(r"/aws/service/(deeplearning|canonical|eks|debian)/.*(ami-id|image_id)")

original_check = ParameterDict._check_loading_status


def _check(self: Any, key: str) -> None:
    original_check(self, key)
    name = str(key or "")
    if not PUBLIC_IMAGE.fullmatch(name) or dict.__contains__(self, name):
        return
    image = "ami-" + hashlib.sha256(f"{self.region_name}{name}".encode()).hexdigest()[:17]
    ec2 = ec2_backends[self.account_id][self.region_name]
    if image not in ec2.amis:
        ec2.amis[image] = Ami(
            ec2,
            image,
            name=name.rsplit("/", 2)[-2],
            description=name,
            owner_id="898082745236",
            owner_alias="amazon",
            public=True,
            virtualization_type="hvm",
            architecture="x86_64",
            root_device_name="/dev/sda1",
            root_device_type="ebs",
            creation_date=utcnow(),
        )
    dict.__setitem__(self, name, [])
    dict.__getitem__(self, name).append(
        Parameter(
            account_id=self.account_id,
            name=name,
            value=image,
            parameter_type="String",
            description=None,
            allowed_pattern=None,
            keyid=None,
            last_modified_date=utcnow(),
            version=1,
            data_type="aws:ec2:image",
        )
    )


def install() -> None:
    ParameterDict._check_loading_status = _check
