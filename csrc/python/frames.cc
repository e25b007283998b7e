#include "python/frames.h"

#include <torch/extension.h>

#include <map>
#include <memory>

namespace py = pybind11;

namespace torch_tpu::python {
namespace {

// The directories whose frames are not the user's, with their last slash.
const std::vector<std::string>& library_directories() {
  static const auto* directories = [] {
    auto* found = new std::vector<std::string>;
    for (const char* name : {"torch", "torch_tpu"}) {
      const auto file = py::module_::import(name).attr("__file__").cast<std::string>();
      found->push_back(file.substr(0, file.rfind('/') + 1));
    }
    return found;
  }();
  return *directories;
}

bool is_users(const std::string& file) {
  for (const std::string& directory : library_directories()) {
    if (file.compare(0, directory.size(), directory) == 0) return false;
  }
  return file.rfind("<frozen ", 0) != 0;
}

struct Place {
  bool users;
  std::map<int, std::string> lines;  // by number
};

// One per code object, which is kept alive: its address is the key. Under Python's lock.
Place& place_of(PyCodeObject* code) {
  static auto* places = new std::map<PyCodeObject*, std::unique_ptr<Place>>;
  auto& place = (*places)[code];
  if (!place) {
    Py_INCREF(code);
    const auto file = py::handle(reinterpret_cast<PyObject*>(code)).attr("co_filename");
    place = std::make_unique<Place>(Place{is_users(file.cast<std::string>()), {}});
  }
  return *place;
}

const char* line_text(PyCodeObject* code, Place& place, int line) {
  auto [found, added] = place.lines.try_emplace(line);
  if (added) {
    const py::handle object(reinterpret_cast<PyObject*>(code));
    found->second = object.attr("co_filename").cast<std::string>() + ":" + std::to_string(line) +
                    " in " + object.attr("co_name").cast<std::string>();
  }
  return found->second.c_str();
}

}  // namespace

const char* user_line() {
  if (!Py_IsInitialized()) return nullptr;
  const py::gil_scoped_acquire gil;
  auto frame = py::reinterpret_steal<py::object>(
      reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  while (frame) {
    auto* current = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const auto code =
        py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(current)));
    auto* code_object = reinterpret_cast<PyCodeObject*>(code.ptr());
    Place& place = place_of(code_object);
    if (place.users) return line_text(code_object, place, PyFrame_GetLineNumber(current));
    frame =
        py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(current)));
  }
  return nullptr;
}

std::string backward_origin() {
  if (!Py_IsInitialized()) return "";
  const py::gil_scoped_acquire gil;
  try {
    const py::object node = py::module_::import("torch._C").attr("_current_autograd_node")();
    if (node.is_none()) return "";
    return py::module_::import("torch_tpu.debug_frames")
        .attr("describe_backward")(node)
        .cast<std::string>();
  } catch (py::error_already_set&) {
    return "";  // this text only adds to an error that is being raised
  }
}

}  // namespace torch_tpu::python
