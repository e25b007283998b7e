"""What torch.cuda has and torch.tpu has not, and why: the one list that errors, tests and docs/from-cuda.md share.

A name stands for itself in every module of torch.cuda where it occurs; a module's name stands for all that is in it.
"""

_CACHING = "memory comes from PJRT, which has no allocator that a program could call or replace"
_GRAPHS = "programs are compiled, cached and launched whole already"
_HANDLES = "PJRT runs programs, not kernels on native streams: there is no such handle"
_MONITOR = "PJRT does not report it; on a TPU host the command tpu-info does"
_NVIDIA = "it belongs to NVIDIA's driver"
_NCCL = "it is NVIDIA's library; PyTorch's collectives are in torch.distributed"
_SPARSE = "the device has no sparse tensors"

ABSENT: dict[str, str] = {
    "CUDAGraph": _GRAPHS,
    "graph": _GRAPHS,
    "graph_pool_handle": _GRAPHS,
    "graphs": _GRAPHS,
    "make_graphed_callables": _GRAPHS,
    "CUDAPluggableAllocator": _CACHING,
    "MemPool": _CACHING,
    "caching_allocator_alloc": _CACHING,
    "caching_allocator_delete": _CACHING,
    "caching_allocator_disabled": _CACHING,
    "caching_allocator_enable": _CACHING,
    "change_current_allocator": _CACHING,
    "use_mem_pool": _CACHING,
    "ExternalStream": _HANDLES,
    "current_blas_handle": _HANDLES,
    "current_solver_handle": _HANDLES,
    "get_stream_from_external": _HANDLES,
    "CudaError": "errors of the device are RuntimeError, out of memory is torch.OutOfMemoryError",
    "check_error": _NVIDIA,
    "cudaStatus": _NVIDIA,
    "cudart": _NVIDIA,
    "gds": _NVIDIA,
    "green_contexts": _NVIDIA,
    "GreenContext": _NVIDIA,
    "DeferredCudaCallError": "what is called before the device has started is only seeding, which does not fail",
    "clock_rate": _MONITOR,
    "list_gpu_processes": _MONITOR,
    "memory_usage": _MONITOR,
    "power_draw": _MONITOR,
    "temperature": _MONITOR,
    "utilization": _MONITOR,
    "get_arch_list": "programs are compiled at run time, for the device that is there",
    "get_gencode_flags": "programs are compiled at run time, for the device that is there",
    "jiterator": "it compiles CUDA source; write the function with PyTorch's operators",
    "tunable": "it tunes cuBLAS and hipBLAS; XLA chooses its own kernels",
    "nvtx": "it is NVIDIA's tracer; mark ranges with torch.profiler.record_function",
    "profiler": "it drives NVIDIA's profiler; use torch.profiler",
    "nccl": _NCCL,
    "sparse": _SPARSE,
}

# Names of torch.tpu in Google's package torch-tpu that are not here.
ABSENT_OF_TORCH_TPU: dict[str, str] = {
    "distributed": "several processes are not supported in this version",
    "ops": "its operators are not in this version; PyTorch's own are",
    "optimizers": "use torch.optim, whose optimizers run as one program for all parameters",
    "pallas": "kernels written with JAX are not supported",
    "topology_aware_mesh": "several processes are not supported in this version",
}


def explain(module: str, name: str) -> AttributeError:
    """The error for an attribute that `module` does not have."""
    reason = ABSENT.get(name) or ABSENT_OF_TORCH_TPU.get(name)
    because = f": {reason}" if reason else ""
    return AttributeError(f"module '{module}' has no attribute '{name}'{because}", name=name)
