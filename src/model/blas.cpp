#include "model/blas.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace hf {
namespace {

template <class Function>
Function* find_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// The file that provides sgemm_, symbolic links (Debian's alternatives) resolved; "" where no library exports
// it.
std::string sgemm_library() {
  void* const sgemm = dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info info{};
  if (sgemm == nullptr || dladdr(sgemm, &info) == 0 || info.dli_fname == nullptr) return "";
  std::error_code error;
  const auto path = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::string(info.dli_fname) : path.string();
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

BlasInfo blas_info() {
  const std::string path = sgemm_library();
  const std::string file = lower(path);
  if (contains(file, "openblas")) {
    std::string version = "OpenBLAS";
    if (auto* config = find_function<char*()>("openblas_get_config")) version = config();
    return {version + " (" + path + ")", false};
  }
  if (contains(file, "mkl")) return {"MKL (" + path + ")", false};
  if (contains(file, "blis")) return {"BLIS (" + path + ")", false};
  if (contains(file, "atlas")) return {"ATLAS (" + path + ")", false};
  // LibTorch's own packages carry the BLAS inside and do not export it.
  if (path.empty() || contains(file, "libtorch")) {
    if (at::hasMKL()) return {"MKL (inside LibTorch)", false};
    const std::string config = lower(at::show_config());
    if (contains(config, "blas_info=open")) return {"OpenBLAS (inside LibTorch)", false};
    if (contains(config, "blas_info=mkl")) return {"MKL (inside LibTorch)", false};
    return {"unknown (inside LibTorch)", true};
  }
  return {"reference BLAS (" + path + ")", true};
}

void set_compute_threads(int threads) {
  threads = std::max(threads, 1);
  at::set_num_threads(threads);
  if (auto* set = find_function<void(int)>("openblas_set_num_threads")) set(threads);
}

int openblas_threads() {
  auto* get = find_function<int()>("openblas_get_num_threads");
  return get == nullptr ? 0 : get();
}

}  // namespace hf
