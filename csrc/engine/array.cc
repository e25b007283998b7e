#include "engine/array.h"

#include <c10/core/DeviceType.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <map>
#include <mutex>
#include <unordered_map>

#include "engine/client.h"
#include "engine/memory.h"

namespace torch_tpu::engine {
namespace {

// Addresses come from one reserved range, split into regions by size class (powers of two), so that an address leads
// to its slot by arithmetic alone.
constexpr int kSmallestClass = 9;  // 512 B
constexpr int kLargestClass = 39;  // 512 GiB
constexpr int kRegionBits = 40;    // 1 TiB of addresses a class
constexpr int kClasses = kLargestClass - kSmallestClass + 1;

class AddressSpace {
 public:
  AddressSpace() {
    const size_t bytes = static_cast<size_t>(kClasses) << kRegionBits;
    void* base =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK(
        base != MAP_FAILED, "tpu: cannot reserve ", bytes >> kRegionBits,
        " TiB of addresses for data_ptr(); is there a limit on virtual memory (ulimit -v)?");
    base_ = static_cast<char*>(base);
  }

  char* allocate(int64_t bytes, Slot* slot) {
    TORCH_CHECK_WITH(OutOfMemoryError, bytes <= int64_t{1} << kLargestClass, "tpu: a storage of ",
                     bytes, " bytes is too large");
    int cls = kSmallestClass;
    while (cls < kLargestClass && (int64_t{1} << cls) < bytes) ++cls;
    std::lock_guard lock(mutex_);
    for (;; ++cls) {
      TORCH_CHECK_WITH(OutOfMemoryError, cls <= kLargestClass,
                       "tpu: too many large storages live at once");
      Region& region = regions_[cls - kSmallestClass];
      uint32_t index;
      if (!region.free.empty()) {
        index = region.free.back();
        region.free.pop_back();
      } else if (static_cast<int64_t>(region.slots.size()) < (int64_t{1} << (kRegionBits - cls))) {
        index = static_cast<uint32_t>(region.slots.size());
        region.slots.push_back(nullptr);
      } else {
        continue;
      }
      region.slots[index] = slot;
      slot->serial = ++last_serial_;
      return base_ + (static_cast<int64_t>(cls - kSmallestClass) << kRegionBits) +
             (static_cast<int64_t>(index) << cls);
    }
  }

  void release(const char* address) {
    std::lock_guard lock(mutex_);
    const auto [region, index] = locate(address);
    region->slots[index] = nullptr;
    region->free.push_back(index);
  }

  template <typename Visit>
  void for_each(Visit visit) {
    std::lock_guard lock(mutex_);
    for (const Region& region : regions_) {
      for (Slot* slot : region.slots) {
        if (slot != nullptr) visit(*slot);
      }
    }
  }

  Slot* find(const void* address) {
    const char* p = static_cast<const char*>(address);
    if (p < base_ || p >= base_ + (static_cast<int64_t>(kClasses) << kRegionBits)) return nullptr;
    std::lock_guard lock(mutex_);
    const auto [region, index] = locate(p);
    return index < region->slots.size() ? region->slots[index] : nullptr;
  }

 private:
  struct Region {
    std::vector<Slot*> slots;
    std::vector<uint32_t> free;
  };
  std::pair<Region*, uint32_t> locate(const char* p) {
    const int64_t distance = p - base_;
    const int cls = static_cast<int>(distance >> kRegionBits);
    const int64_t within = distance & ((int64_t{1} << kRegionBits) - 1);
    return {&regions_[cls], static_cast<uint32_t>(within >> (cls + kSmallestClass))};
  }

  std::mutex mutex_;
  uint64_t last_serial_ = 0;
  char* base_ = nullptr;
  Region regions_[kClasses];
};

AddressSpace& addresses() {
  static auto* space = new AddressSpace;  // outlives every storage
  return *space;
}

}  // namespace

const ArrayType* intern_type(DType dtype, const std::vector<int64_t>& dims) {
  static std::mutex mutex;
  static auto* types =
      new std::map<std::pair<DType, std::vector<int64_t>>, std::unique_ptr<ArrayType>>;
  std::lock_guard lock(mutex);
  auto& entry = (*types)[{dtype, dims}];
  if (!entry) {
    int64_t bytes = stablehlo::byte_size(dtype);
    for (int64_t d : dims) bytes *= d;
    entry = std::make_unique<ArrayType>(ArrayType{dtype, dims, bytes});
  }
  return entry.get();
}

const ArrayType* type_of(const ir::ValueSpec& spec) {
  return intern_type(spec.dtype, stablehlo::fixed(spec.dims));
}

ir::ValueSpec spec_of(const ArrayType* type) {
  ir::ValueSpec spec;
  spec.dtype = type->dtype;
  for (const int64_t d : type->dims) spec.dims.emplace_back(d);
  return spec;
}

int64_t bytes_of(std::span<const ArrayPtr> arrays) {
  int64_t bytes = 0;
  for (const ArrayPtr& array : arrays) bytes += array->type->bytes;
  return bytes;
}

std::string type_text(const ArrayType& type) {
  std::string text = std::string(stablehlo::torch_name(type.dtype)) + "[";
  for (size_t i = 0; i < type.dims.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(type.dims[i]);
  }
  return text + "]";
}

Array::~Array() {
  if (buffer == nullptr || in_bad_fork()) return;  // a forked child's buffers are its parent's
  if (history::recording()) [[unlikely]]
    history::freed(*this);
  pjrt::destroy(client().api(), buffer);
  memory(device).freed(type->bytes);
}

void Array::set_buffer(PJRT_Buffer* b) {
  buffer = b;
  address = history::next_address(type->bytes);
  memory(device).allocated(type->bytes);
  if (history::recording()) [[unlikely]]
    history::allocated(*this);
  state.store(ArrayState::kReady, std::memory_order_release);
}

c10::DataPtr make_slot(int64_t bytes, int device) {
  auto slot = std::make_unique<Slot>();
  slot->bytes = bytes;
  slot->device = device;
  slot->address = addresses().allocate(bytes, slot.get());
  char* address = slot->address;
  return {address, slot.release(), &delete_slot,
          c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device))};
}

void delete_slot(void* context) {
  if (in_bad_fork()) return;  // its locks may be held by the parent's threads for ever
  std::unique_ptr<Slot> slot(static_cast<Slot*>(context));
  addresses().release(slot->address);
}

void for_each_slot(const std::function<void(const Slot&)>& visit) { addresses().for_each(visit); }

std::vector<ArrayPtr> live_arrays(int device) {
  std::vector<ArrayPtr> live;
  for_each_slot([&](const Slot& slot) {
    if (slot.device == device && slot.value) live.push_back(slot.value);
  });
  return live;
}

void put_back(const DeviceError& error) {
  addresses().for_each([&](Slot& slot) {
    while (slot.value && slot.value->error.get() == &error &&
           slot.value->written_to == slot.serial) {
      slot.value = ArrayPtr(slot.value->former);
    }
  });
}

Slot* find_slot(const void* address) { return addresses().find(address); }

Slot* find_slot(const c10::DataPtr& ptr) {
  if (ptr.get_deleter() == &delete_slot) return static_cast<Slot*>(ptr.get_context());
  return ptr.get() == nullptr ? nullptr : addresses().find(ptr.get());
}

}  // namespace torch_tpu::engine
