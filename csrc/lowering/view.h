// Reading a storage's value through a view, and writing a tensor into it. No torch.
#pragma once

#include "ir/graph.h"
#include "stablehlo/builder.h"

namespace torch_tpu::lowering {

using stablehlo::Builder;
using stablehlo::Value;

// The tensor that `view` shows of `storage`: slice / dynamic_slice, transpose, reshape, broadcast, bitcast where the
// strides allow it, else a gather of computed positions (any strides: overlapping, zero, crossing rows). `offset` is the
// run-time i64 offset where view.offset_slot >= 0, else empty.
Value read_view(Builder& b, const Value& storage, const ir::ViewSpec& view,
                const Value& offset = {});

// `storage` with `value` written through `view`; the result has type `result`, the storage's next value (same bytes).
// `storage` is empty for uninitialised memory (zeros). Where the view covers the storage densely, the old value is unused.
Value write_view(Builder& b, const Value& storage, const Value& value, const ir::ViewSpec& view,
                 const ir::ValueSpec& result, const Value& offset = {});

// Whether two elements of the view may share memory; false is certain.
bool may_overlap(const ir::ViewSpec& view);

// The type a storage of `bytes` bytes has after a dense write through `view` (dims in memory order), or after a partial
// write into `old` (null: uninitialised).
ir::ValueSpec value_after_write(const ir::ViewSpec& view, const ir::ValueSpec* old, int64_t bytes);

// Whether the program that reads or writes `view` with a run-time offset is right for this very offset: it must split
// into the same starts-and-windows form over `storage` as the example offset it was compiled for.
bool same_form(const ir::ValueSpec& storage, const ir::ViewSpec& compiled,
               const ir::ViewSpec& wanted);

}  // namespace torch_tpu::lowering
