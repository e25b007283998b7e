"""Autocast, gradient scaling, checkpointing, functional transforms, hooks and higher derivatives agree with the CPU."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


def both(build):
    """build(device) on the CPU and on the device, results compared."""
    want, got = build("cpu"), build("tpu")
    torch.testing.assert_close([t.cpu() for t in got], list(want), rtol=2e-5, atol=1e-6)


def network(device):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)).to(device)


def data(device):
    return (torch.arange(12.0).view(3, 4) / 10 - 0.5).to(device)


def grads(net):
    return [p.grad for p in net.parameters()]


def test_autocast():
    net = network("tpu")
    with torch.autocast("tpu", dtype=torch.bfloat16):
        out = net(data("tpu"))
        assert out.dtype == torch.bfloat16
        assert torch.tensor([1.0], device="tpu").exp().dtype == torch.float32
        assert functional.softmax(out, -1).dtype == torch.float32
        with torch.autocast("tpu", enabled=False):
            assert net(data("tpu")).dtype == torch.float32
    out.float().sum().backward()
    assert all(p.grad.dtype == torch.float32 for p in net.parameters())
    torch.testing.assert_close(out.float().cpu(), network("cpu")(data("cpu")), rtol=0.05, atol=0.02)


def test_gradient_scaler():
    net = network("tpu")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("tpu", init_scale=8.0, growth_interval=1)
    before = copy.deepcopy(net.state_dict())
    scaler.scale(net(data("tpu")).sum()).backward()
    scaled = [p.grad.clone() for p in net.parameters()]
    scaler.unscale_(optimizer)
    torch.testing.assert_close([p.grad * 8 for p in net.parameters()], scaled)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 16.0
    assert not torch.equal(before["0.weight"], net[0].weight)
    before = copy.deepcopy(net.state_dict())
    optimizer.zero_grad()
    scaler.scale(net(data("tpu")).sum() * float("inf")).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 8.0
    assert torch.equal(before["0.weight"], net[0].weight)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint(reentrant):
    def build(device):
        net, x = network(device), data(device).requires_grad_()
        checkpoint(net, x, use_reentrant=reentrant).square().sum().backward()
        return [x.grad, *grads(net)]

    both(build)


def test_checkpoint_repeats_dropout():
    net = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5)).to("tpu")
    x = data("tpu").requires_grad_()
    out = checkpoint(net, x, use_reentrant=False)
    out.sum().backward()
    kept = (out != 0).float()
    torch.testing.assert_close(x.grad, kept @ net[0].weight * 2)


def test_functional_transforms():
    def build(device):
        net, x = network(device), data(device)
        params = {name: p.detach() for name, p in net.named_parameters()}

        def loss(params, row):
            return torch.func.functional_call(net, params, (row,)).square().sum()

        per_row = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(params, x)
        jacobian = torch.func.jacrev(torch.sin)(x[0])
        return [*per_row.values(), jacobian, torch.func.vmap(lambda row: row * 2 + row.sum())(x)]

    both(build)


def test_second_derivatives():
    def build(device):
        net, x = network(device), data(device).requires_grad_()
        (first,) = torch.autograd.grad(net(x).pow(3).sum(), x, create_graph=True)
        first.square().sum().backward()
        return [first.detach(), x.grad, *grads(net)[:3]]

    both(build)


def test_hooks_and_accumulation():
    def build(device):
        net, seen = network(device), []
        net[0].weight.register_hook(lambda g: g * 2)
        net[0].register_forward_hook(lambda module, inputs, out: seen.append(out.detach()))
        for _ in range(2):
            net(data(device)).sum().backward()
        return [*seen, *grads(net)]

    both(build)


def test_clipping_and_norms():
    def build(device):
        net = network(device)
        net(data(device)).square().sum().backward()
        total = nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        return [total, *grads(net)]

    both(build)


def test_in_place_errors_are_pytorchs():
    x = torch.ones(2, device="tpu", requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place"):
        x.add_(1)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with torch.inference_mode():
        z = torch.ones(2, device="tpu") * 2
    with pytest.raises(RuntimeError, match=r"[Ii]nference tensor"):
        (x * z).sum().backward()


def test_custom_function():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x

    x = torch.tensor([1.0, 3.0], device="tpu", requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [1.0, 3.0]


def test_anomaly_mode_names_the_operator():
    x = torch.tensor([-1.0], device="tpu", requires_grad=True)
    with (
        pytest.warns(UserWarning, match="Traceback of forward call"),
        torch.autograd.detect_anomaly(),
        pytest.raises(RuntimeError, match="SqrtBackward0"),
    ):
        x.sqrt().sum().backward()


def test_list_operators_count_versions():
    x = torch.ones(3, device="tpu", requires_grad=True)
    weight = torch.full((3,), 2.0, device="tpu")
    for _ in range(3):
        before = weight._version
        out = (x * weight).sum()
        torch._foreach_add_([weight], 1)
        assert weight._version == before + 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.backward()
    torch._foreach_add_([weight, weight], 1)
    assert weight.tolist() == [7.0, 7.0, 7.0]


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint_keeps_random_numbers_of_cpu_and_device(reentrant):
    net = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5)).to("tpu")
    x = data("tpu").requires_grad_()

    def noisy(x):
        return net(x) * torch.rand(64).to("tpu") + torch.rand(64, device="tpu")

    torch.manual_seed(2)
    want = noisy(x)
    want.sum().backward()
    grad, x.grad = x.grad, None
    torch.manual_seed(2)
    out = checkpoint(noisy, x, use_reentrant=reentrant)
    after = (torch.rand(3), torch.rand(3, device="tpu").cpu())
    out.sum().backward()
    torch.testing.assert_close(out, want)
    torch.testing.assert_close(x.grad, grad)
    torch.manual_seed(2)
    noisy(x)
    assert torch.equal(after[0], torch.rand(3))
    assert torch.equal(after[1], torch.rand(3, device="tpu").cpu())


def test_autocast_of_custom_functions():
    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="tpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a.mm(b)

        @staticmethod
        @torch.amp.custom_bwd(device_type="tpu")
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            return grad.mm(b.t()), a.t().mm(grad)

    class InFloat32(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="tpu", cast_inputs=torch.float32)
        def forward(ctx, a):
            return a * 1

        @staticmethod
        @torch.amp.custom_bwd(device_type="tpu")
        def backward(ctx, grad):
            return grad

    a = data("tpu").requires_grad_()
    with torch.autocast("tpu", dtype=torch.bfloat16):
        out = Product.apply(a, data("tpu").t())
        assert out.dtype == torch.bfloat16
        assert InFloat32.apply(out).dtype == torch.float32
    out.float().sum().backward()
    want = data("cpu").sum(0).expand(3, 4)
    torch.testing.assert_close(a.grad.cpu(), want, rtol=0.05, atol=0.05)


def test_autocast_dtypes_and_nesting():
    assert torch.amp.is_autocast_available("tpu")
    x = data("tpu")
    with torch.autocast("tpu", dtype=torch.float16):
        assert torch.is_autocast_enabled("tpu")
        assert (x @ x.t()).dtype == torch.float16
        with torch.autocast("tpu", dtype=torch.bfloat16):
            assert (x @ x.t()).dtype == torch.bfloat16
        assert (x @ x.t()).dtype == torch.get_autocast_dtype("tpu") == torch.float16
        assert (data("cpu") @ data("cpu").t()).dtype == torch.float32
    assert not torch.is_autocast_enabled("tpu")
    with pytest.warns(UserWarning, match="not supported"), torch.autocast("tpu", dtype=torch.int8):
        assert (x @ x.t()).dtype == torch.float32

    @torch.autocast("tpu", dtype=torch.bfloat16)
    def product(x):
        return x @ x.t()

    assert product(x).dtype == torch.bfloat16
    with pytest.raises(RuntimeError, match="unsafe to autocast"), torch.autocast("tpu", dtype=torch.bfloat16):
        functional.binary_cross_entropy(x.sigmoid(), x.sigmoid())


def test_old_amp_names():
    assert not torch.tpu.amp.amp_definitely_not_available()
    with pytest.warns(FutureWarning, match=r"torch\.amp\.autocast\('tpu'"):
        context = torch.tpu.amp.autocast(dtype=torch.bfloat16)
    with context:
        assert (data("tpu") @ data("tpu").t()).dtype == torch.bfloat16
    with pytest.warns(FutureWarning, match=r"torch\.amp\.GradScaler\('tpu'"):
        scaler = torch.tpu.amp.GradScaler(init_scale=4.0)
    assert scaler.scale(torch.ones(2, device="tpu")).tolist() == [4.0, 4.0]


def test_gradient_scaler_state_travels():
    scaler = torch.amp.GradScaler("tpu", init_scale=32.0, growth_interval=3)
    net = network("tpu")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler.scale(net(data("tpu")).sum()).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    assert torch.isfinite(norm)
    scaler.step(optimizer)
    scaler.update()
    other = torch.amp.GradScaler("tpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == scaler.get_scale() == 32.0
    assert other.state_dict() == scaler.state_dict()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)


@pytest.mark.parametrize("options", [{"fused": True}, {"foreach": True}, {"foreach": False}])
def test_optimizers_of_modules_that_were_loaded_from_each_other(options):
    # load_state_dict copies: until one of two tensors is written they share their value, which is given away only once.
    models = {}
    for device in ("cpu", "tpu"):
        torch.manual_seed(0)
        first, second = nn.Linear(3, 2), nn.Linear(3, 2)
        first, second = first.to(device), second.to(device)
        second.load_state_dict(first.state_dict())
        optimizer = torch.optim.AdamW([*second.parameters(), *first.parameters()], lr=0.1, **options)
        for _ in range(3):
            x = torch.ones(4, 3).to(device)
            (first(x).square().sum() + second(x).sum()).backward()
            nn.utils.clip_grad_norm_([*first.parameters(), *second.parameters()], 1.0)
            optimizer.step()
            optimizer.zero_grad()
        models[device] = [p.detach().cpu() for p in (*first.parameters(), *second.parameters())]
    for ours, theirs in zip(models["tpu"], models["cpu"], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
