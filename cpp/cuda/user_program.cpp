// Compiles users' sources, once each, and asks the compiler for the types of a kernel's parameters.
#include "cuda/user_program.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>

#include "cuda/api/nvjitlink.h"
#include "cuda/api/nvrtc.h"
#include "cuda/at_work.h"
#include "cuda/cache.h"
#include "cuda/device.h"
#include "cuda/kernel_key.h"

namespace rlx::cuda {
namespace {

constexpr size_t most_programs = 256;  // that stay in memory

// A variable whose symbol spells the kernel's type and the sizes of its parameters, behind the
// source so that no line moves. It takes one byte of the module.
constexpr const char* signature_text = R"(
template <unsigned long long...> struct rlx_sizes {};
template <class R, class... P> __device__ rlx_sizes<sizeof(P)...> rlx_sized(R (*)(P...));
template <class F, class S> __device__ char rlx_signature;
)";

std::string signature_of(const std::string& kernel) {
  return "&rlx_signature<decltype(" + kernel + "), decltype(rlx_sized(" + kernel + "))>";
}

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : "";
}

// A message with a log below its first line, without what that says of the lines above, and
// without a count that includes them.
std::string readable(const std::string& log) {
  const size_t first = std::min(log.find('\n'), log.size() - 1) + 1;
  std::string kept = log.substr(0, first);
  for (size_t at = first; at < log.size();) {
    const size_t end = std::min(log.find("\n\n", at), log.size());
    const std::string part = log.substr(at, end - at);
    const bool ours = part.find("rlx_si") != std::string::npos;
    if (!ours && part.find("detected in the compilation") == std::string::npos) {
      kept += part + "\n\n";
    }
    at = end + 2;
  }
  while (!kept.empty() && std::isspace(static_cast<unsigned char>(kept.back()))) kept.pop_back();
  return kept;
}

// Texts one after the other, each behind its length.
std::vector<std::byte> joined(const std::vector<std::string>& texts) {
  std::vector<std::byte> bytes;
  for (const std::string& text : texts) {
    const uint64_t size = text.size();
    const auto head = std::as_bytes(std::span(&size, 1));
    const auto body = std::as_bytes(std::span(text));
    bytes.insert(bytes.end(), head.begin(), head.end());
    bytes.insert(bytes.end(), body.begin(), body.end());
  }
  return bytes;
}

std::vector<std::string> parted(std::span<const std::byte> bytes) {
  std::vector<std::string> texts;
  while (bytes.size() >= sizeof(uint64_t)) {
    uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes = bytes.subspan(sizeof size);
    if (size > bytes.size()) return {};
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), size);
    bytes = bytes.subspan(size);
  }
  return texts;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Of PTX, which no GPU runs as it is.
bool is_virtual(const std::string& architecture) { return architecture.starts_with("compute_"); }

// What nvJitLink must be told again of NVRTC's options, in its own spelling: with link-time
// optimisation it is the one that makes code. It takes each flag once: what is asked for by itself
// wins over what fast mathematics implies.
std::vector<std::string> link_options(const UserSource& source) {
  constexpr std::pair<std::string_view, const char*> spellings[] = {
      {"-maxrregcount", "-maxrregcount"}, {"-ftz", "-ftz"}, {"-prec-div", "-prec-div"},
      {"-prec-sqrt", "-prec-sqrt"}, {"-fmad", "-fma"}};
  std::map<std::string, std::string> given, implied;
  for (const std::string& option : source.options) {
    const std::string_view all = std::string_view(option).substr(option.starts_with("--"));
    const std::string_view name = all.substr(0, all.find('='));
    const std::string_view value = all.substr(std::min(name.size() + 1, all.size()));
    if (name == "-use_fast_math") {
      implied = {{"-ftz", "=1"}, {"-prec-div", "=0"}, {"-prec-sqrt", "=0"}, {"-fma", "=1"}};
    }
    if (name == "-lineinfo" || name == "-generate-line-info") given["-lineinfo"] = "";
    if (name == "-G" || name == "-device-debug") given["-g"] = "";
    if (name == "-ptxas-options" || name == "-Xptxas") given["-Xptxas=" + std::string(value)] = "";
    for (const auto& [compiler, linker] : spellings) {
      if (name != compiler) continue;
      given[linker] = value == "true" ? "=1" : value == "false" ? "=0" : "=" + std::string(value);
    }
  }
  given.merge(implied);
  std::vector<std::string> found = {"-arch=" + source.architecture, "-lto"};
  if (is_virtual(source.architecture)) found.push_back("-ptx");
  for (const auto& [flag, value] : given) found.push_back(flag + value);
  return found;
}

// What compiling needs, made once for the key and the compiler alike.
struct Job {
  explicit Job(const UserSource& from);
  UserProgram run() const;

  const UserSource& source;
  const api::Nvrtc& nvrtc = api::Nvrtc::get();
  std::optional<api::NvJitLink> linker;
  std::string text;
  std::vector<std::string> options, expressions;
  Digest key;
};

Job::Job(const UserSource& from) : source(from), text(from.text), expressions(from.expressions) {
  std::string compilers = nvrtc.version();
  options = {"-arch=" + source.architecture};
  options.insert(options.end(), source.options.begin(), source.options.end());
  if (source.lto) {
    linker = api::NvJitLink::get(nvrtc.version());
    compilers += "+" + linker->version();
    options.push_back("-dlto");
  }
  if (source.typed) {
    text += signature_text;
    expressions.push_back(signature_of(expressions.front()));
  }
  Sha256 included;
  included.add_text(source.included);
  const Digest headers[] = {digest_of(source.headers), included.finish()};
  key = digest_of({.compilers = compilers,
                   .name = source.name,
                   .text = text,
                   .options = options,
                   .entries = expressions,
                   .headers = headers});
}

UserProgram Job::run() const {
  try {
    api::Compiled made = nvrtc.compile(source.name, text, source.headers, options, expressions);
    UserProgram program;
    program.log = std::move(made.log), program.lowered = std::move(made.lowered);
    program.cubin = std::move(made.cubin), program.ptx = std::move(made.ptx);
    if (linker) {
      const bool to_ptx = is_virtual(source.architecture);
      api::Linked linked = linker->link(source.name, made.lto, link_options(source), to_ptx);
      (to_ptx ? program.ptx : program.cubin) = std::move(linked.image);
      program.log += linked.log;
    }
    return program;
  } catch (const Error& error) {
    if (error.kind != ErrorKind::internal) throw;
    Error refusal(ErrorKind::input, readable(error.what()));
    if (std::strstr(error.what(), "open source file")) {
      const bool newer = nvrtc.version().starts_with("13");
      refusal.remedy =
          std::string("headers= or include_paths=; CUDA's own come with pip install ") +
          (newer ? "nvidia-cuda-runtime, in nvidia/cu13/include"
                 : "nvidia-cuda-runtime-cu12, in nvidia/cuda_runtime/include");
    }
    throw refusal;
  }
}

std::optional<UserProgram> read(const DiskCache& cache, const Job& job) {
  const auto entry = cache.read(job.key);
  const std::vector<std::string> parts = entry ? parted(*entry) : std::vector<std::string>();
  if (parts.size() != 3 + job.expressions.size()) return std::nullopt;
  UserProgram program;
  program.cubin = bytes_of(parts[0]), program.ptx = bytes_of(parts[1]), program.log = parts[2];
  program.lowered.assign(parts.begin() + 3, parts.end());
  return program;
}

UserProgramPtr make(const Job& job) {
  const DiskCache cache(cache_folder(), "kernel");
  std::optional<UserProgram> program = read(cache, job);
  if (!program) {
    program = job.run();
    std::vector<std::string> parts = {text_of(program->cubin), text_of(program->ptx),
                                      program->log};
    parts.insert(parts.end(), program->lowered.begin(), program->lowered.end());
    cache.write(job.key, joined(parts));
  }
  program->key = job.key, program->architecture = job.source.architecture;
  if (job.source.typed) {
    program->signature = demangled(program->lowered.back());
    program->lowered.pop_back();
  }
  return std::make_shared<const UserProgram>(std::move(*program));
}

// Programs by key, those used longest ago leaving first.
class Programs {
 public:
  UserProgramPtr get(const Job& job) {
    std::promise<UserProgramPtr> promise;
    std::shared_future<UserProgramPtr> known;
    {
      const std::lock_guard lock(mutex_);
      Entry& entry = entries_[job.key];
      entry.used = ++clock_;
      known = entry.program;
      if (!known.valid()) entry.program = promise.get_future().share();
      if (entries_.size() > most_programs) drop_oldest();
    }
    if (known.valid()) return known.get();
    try {
      UserProgramPtr made = make(job);
      promise.set_value(made);
      return made;
    } catch (...) {
      promise.set_exception(std::current_exception());
      const std::lock_guard lock(mutex_);
      entries_.erase(job.key);
      throw;
    }
  }

 private:
  struct Entry {
    std::shared_future<UserProgramPtr> program;
    uint64_t used = 0;
  };
  void drop_oldest() {
    entries_.erase(std::ranges::min_element(
        entries_, {}, [](const auto& entry) { return entry.second.used; }));
  }

  std::mutex mutex_;
  std::map<Digest, Entry> entries_;
  uint64_t clock_ = 0;
};

}  // namespace

UserProgramPtr compile_user(const UserSource& source) {
  const Working here("no kernel is compiled");
  return of_process<Programs>().get(Job(source));
}

std::string architecture_named(const std::string& name) {
  const api::Nvrtc& nvrtc = api::Nvrtc::get();
  std::string kind = "sm_", rest = name;
  for (const char* prefix : {"sm_", "compute_"}) {
    if (rest.starts_with(prefix)) kind = prefix, rest = rest.substr(kind.size());
  }
  const auto letter = std::ranges::find_if(rest, [](unsigned char c) { return !std::isdigit(c); });
  const std::string number(rest.begin(), letter), suffix(letter, rest.end());
  const bool known = std::ranges::any_of(
      nvrtc.supported(), [&](int each) { return std::to_string(each) == number; });
  if (known && (suffix.empty() || suffix == "a" || suffix == "f")) return kind + rest;
  std::string list;
  for (const int each : nvrtc.supported()) {
    list += (list.empty() ? "sm_" : ", sm_") + std::to_string(each);
  }
  throw Error(ErrorKind::input, "NVRTC " + nvrtc.version() + " compiles for no such architecture")
      .expected_got(list + ", or compute_ for sm_", name);
}

std::string architecture_of(int ordinal) {
  return api::Nvrtc::get().architecture(open_gpu(ordinal)->driver->info().capability);
}

}  // namespace rlx::cuda
