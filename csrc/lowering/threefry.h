// The Threefry-2x32 block cipher with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").
#pragma once

#include <utility>

#include "stablehlo/builder.h"

namespace torch_tpu::lowering {

// All four operands are ui32; they broadcast. Returns the two words of the enciphered counter.
std::pair<stablehlo::Value, stablehlo::Value> threefry2x32(stablehlo::Builder& b,
                                                           stablehlo::Value key0,
                                                           stablehlo::Value key1,
                                                           stablehlo::Value counter0,
                                                           stablehlo::Value counter1);

}  // namespace torch_tpu::lowering
