"""torch.compile: tensors on the device get a clear refusal, all others keep Inductor with its modes and options."""

import pytest
import torch


def test_cpu_inputs_keep_inductor():
    from torch._inductor import metrics

    metrics.reset()
    x = torch.zeros(3)
    torch.testing.assert_close(torch.compile(lambda x: (x * 2 + 1).sin())(x), torch.full((3,), 0.8414709848078965))
    assert metrics.generated_kernel_count == 1
    torch.compile(lambda x: (x * 3 + 1).sin(), options={"max_autotune": False})(x)
    assert metrics.generated_kernel_count == 2
    with pytest.raises(Exception, match="no_such_option"):
        torch.compile(lambda x: (x * 4 + 1).sin(), options={"no_such_option": 1})(x)


@pytest.mark.parametrize("arguments", [{}, {"backend": "tpu"}, {"mode": "max-autotune"}])
def test_device_inputs_are_refused_clearly(arguments):
    torch._dynamo.reset()
    with pytest.raises(Exception, match=r"torch\.compile does not support tensors on the device 'tpu' yet"):
        torch.compile(lambda x: x + 1, **arguments)(torch.ones(2, device="tpu"))


def test_dynamo_sees_our_device():
    from torch._dynamo.device_interface import get_interface_for_device

    interface = get_interface_for_device("tpu")
    assert interface.is_available()
    assert interface.is_dtype_supported(torch.float64)
    assert interface.device_count() == torch.tpu.device_count()
    assert interface.current_device() == torch.tpu.current_device()
    assert "tpu" in torch._dynamo.list_backends()
