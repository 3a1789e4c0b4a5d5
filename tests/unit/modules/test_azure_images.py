"""Machine images on Azure: an image or a reason for every packaged type, pins first; and the key that nobody holds."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from itertools import count

import pytest

from catalog import load
from modules.azure.images import image_reference, machine_image, no_image
from planner.model.errors import InputError
from planner.model.offer import Cloud
from tests.builders import instance_type


def azure(name="Standard_ND96isr_H100_v5", gpu="H100", **more):
    return replace(instance_type(name, cloud=Cloud.AZURE), gpu=gpu, **more)


def test_every_packaged_azure_type_boots_an_image_or_says_why_not():
    types = [kind for kind in load.load_market().types if kind.cloud is Cloud.AZURE]
    assert types
    without = set()
    for kind in types:
        if no_image(kind):
            without.add(kind.gpu)
            with pytest.raises(InputError, match=kind.name):
                machine_image(kind, "eastus")
        else:
            reference = image_reference(machine_image(kind, "eastus"))
            assert isinstance(reference, dict)
            assert reference["version"] != "latest"
    assert without <= {"A10", "M60", "MI25", "MI300X", "H100-NVL"}, "H100-NVL in a confidential VM"


def test_volta_has_an_image_of_its_own():
    assert ":2404-v100:" in machine_image(azure("Standard_ND40rs_v2", "V100-32GB"), "eastus")
    assert ":2204:" in machine_image(azure("Standard_NC4as_T4_v3", "T4"), "eastus")


@pytest.mark.parametrize(
    ("name", "gpu", "why"),
    [
        ("Standard_NV36ads_A10_v5", "A10", "GRID"),
        ("Standard_ND96isr_MI300X_v5", "MI300X", "NVIDIA GPUs only"),
        ("Standard_NCC40ads_H100_v5", "H100-NVL", "confidential"),
        ("Standard_NX", "Q9", "not known"),
    ],
)
def test_a_type_without_a_driver_is_refused_with_the_reason_and_the_way_out(name, gpu, why):
    with pytest.raises(InputError, match=why) as refused:
        machine_image(azure(name, gpu), "eastus")
    assert f"azure/eastus/{name}" in refused.value.diagnostics[0].hint


def test_another_architecture_is_refused():
    assert "arm64" in no_image(azure(arch="arm64"))


def test_the_first_matching_pin_wins_over_a_refusal_too():
    pins = (("azure/west*/*", "a:b:c:1"), ("azure/eastus/*A10*", "a:b:c:2"), ("azure/*/*", "/subscriptions/s/x"))
    assert machine_image(azure("Standard_NV36ads_A10_v5", "A10"), "eastus", pins) == "a:b:c:2"
    assert machine_image(azure(), "eastus", pins) == "/subscriptions/s/x"


@pytest.mark.parametrize("image", ["ami-1", "a:b:c", "a:b:c:d:e", "a:b::d", "a:b c:d:e", ""])
def test_a_pin_that_is_no_image_is_refused(image):
    with pytest.raises(InputError, match="is no Azure image"):
        machine_image(azure(), "eastus", (("*", image),))


# ---- the key


P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def decode(data):
    """A point of edwards25519 from its 32 bytes (RFC 8032, 5.1.3); None where they are none."""
    value = int.from_bytes(data, "little")
    sign, y = value >> 255, value & (2**255 - 1)
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if v * x * x % P == -u % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or v * x * x % P != u % P or (x == 0 and sign):
        return None
    return (x if x & 1 == sign else P - x, y)


def add(one, other):
    (a, b), (c, d) = one, other
    t = D * a * b * c * d % P
    return ((a * d + b * c) * pow(1 + t, -1, P) % P, (b * d + a * c) * pow(1 - t, -1, P) % P)


def times(number, point):
    out = (0, 1)
    while number:
        out = add(out, point) if number & 1 else out
        point, number = add(point, point), number >> 1
    return out


def test_the_arithmetic_is_the_curves():
    base = decode((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    assert base
    assert times(L, base) == (0, 1)
    assert times(8, base) != (0, 1)


def test_the_key_comes_from_a_hash_and_so_has_no_private_half():
    from modules.azure.compute import NOBODY

    for number in count():
        digest = hashlib.sha256(f"skyplan: nobody has the private half of this key {number}".encode()).digest()
        point = decode(digest)
        if point and point != (0, 1) and times(L, point) == (0, 1):
            break
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in (b"ssh-ed25519", digest))
    assert f"ssh-ed25519 {base64.b64encode(blob).decode()}" == NOBODY
    assert number == 1
