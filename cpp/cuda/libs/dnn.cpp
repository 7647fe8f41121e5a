// The handle, convolution graphs, and the run of a plan.
#include "cuda/libs/dnn.h"

#include <numeric>

#include "cuda/api/loader.h"
#include "cuda/cache.h"

namespace rlx::cuda {
namespace {

constexpr int conv_type = 100, conv_mode = 101, conv_dilations = 102, conv_strides = 103,
              conv_pads_end = 104, conv_pads_begin = 105, conv_spatial = 106;
constexpr int operation_alpha = 700, operation_beta = 701, operation_conv = 702, operation_w = 703,
              operation_x = 704, operation_y = 705;
constexpr int pack_ids = 1000, pack_pointers = 1001, pack_workspace = 1003;
constexpr int cross_correlation = 1;

int type_of(DType dtype) {
  switch (dtype) {
    case DType::float32: return dnn::data_float;
    case DType::float16: return dnn::data_half;
    case DType::bfloat16: return dnn::data_bfloat16;
    default: throw DnnRefusal{std::string("cuDNN is not asked for ") + name_of(dtype)};
  }
}

Descriptor& describe(DnnGraph& graph, const DnnConv& c) {
  Descriptor& made = graph.part(dnn::convolution);
  made.set(conv_spatial, dnn::int64, int64_t(c.strides.size()));
  made.set(conv_type, dnn::data_type, int{dnn::data_float});
  made.set(conv_mode, dnn::convolution_mode, cross_correlation);
  made.set(conv_pads_begin, c.pads_begin);
  made.set(conv_pads_end, c.pads_end);
  made.set(conv_strides, c.strides);
  made.set(conv_dilations, c.dilations);
  made.finalize();
  return made;
}

std::vector<int64_t> along_channels(const std::vector<int64_t>& dims) {
  std::vector<int64_t> only(dims.size(), 1);
  only[1] = dims[1];
  return only;
}

std::vector<int64_t> channel_strides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), dims[1]);
  strides[1] = 1;
  return strides;
}

enum : int64_t { x_id = 1, w_id, y_id, bias_id, residual_id, virtual_id };

std::unique_ptr<DnnPlan> build(const DnnFunctions& f, void* handle, const DnnConv& c) {
  DnnGraph graph(f, handle);
  const int type = type_of(c.dtype);
  Descriptor& x = graph.tensor(x_id, type, c.x, c.x_strides);
  Descriptor& w = graph.tensor(w_id, type, c.w, c.w_strides);
  Descriptor& y = graph.tensor(y_id, type, c.y, c.y_strides);
  int64_t next_id = virtual_id;
  int left = int(c.residual) + int(c.bias) + int(c.relu);
  const auto result = [&]() -> Descriptor& {
    if (left-- == 0) return y;
    return graph.tensor(next_id++, dnn::data_float, c.y, c.y_strides, true);
  };
  Descriptor& form = describe(graph, c);
  Descriptor* at = &result();
  Descriptor& operation = graph.part(dnn::convolution_operation);
  operation.set(operation_conv, form);
  operation.set(operation_x, x);
  operation.set(operation_w, w);
  operation.set(operation_y, *at);
  operation.set(operation_alpha, dnn::float32, 1.0f);
  operation.set(operation_beta, dnn::float32, 0.0f);
  operation.finalize();
  graph.add_operation(operation);
  // In this order cuDNN has precompiled engines; with the bias first it compiles for 0.3 to 1 s.
  const auto follow = [&](int mode, const Descriptor* other) {
    Descriptor& next = result();
    graph.pointwise(mode, *at, other, next);
    at = &next;
  };
  Descriptor* bias = nullptr;
  if (c.bias) bias = &graph.tensor(bias_id, type, along_channels(c.y), channel_strides(c.y));
  if (c.residual) follow(dnn::add, &graph.tensor(residual_id, type, c.y, c.y_strides));
  if (bias) follow(dnn::add, bias);
  if (c.relu) follow(dnn::relu, nullptr);
  return graph.finish({.strict = c.dtype == DType::float32 && !c.tf32,
                       .compile = !c.is_fused()});
}

}  // namespace

Dnn::Dnn(std::shared_ptr<Driver> driver)
    : driver_(std::move(driver)), functions_(api::loader().get(api::Lib::cudnn)),
      version_(api::loader().get(api::Lib::cudnn).version) {
  const Current current = driver_->make_current();
  if (const int status = functions_.create(&handle_)) {
    throw Error(ErrorKind::device, "cudnnCreate failed: status " + std::to_string(status));
  }
}

Dnn::Dnn(std::shared_ptr<Driver> driver, std::nullptr_t) : driver_(std::move(driver)) {}

std::unique_ptr<Dnn> Dnn::assumed(std::shared_ptr<Driver> driver) {
  return std::unique_ptr<Dnn>(new Dnn(std::move(driver), nullptr));
}

Dnn::~Dnn() {
  if (!handle_) return;
  if (const Current current = driver_->make_current_quietly()) functions_.destroy(handle_);
}

std::vector<int64_t> DnnConv::key() const {
  std::vector<int64_t> key = {0, int64_t(dtype), tf32, bias, residual, relu, groups};
  for (const auto* list : {&x, &w, &y, &x_strides, &w_strides, &y_strides, &pads_begin, &pads_end,
                           &strides, &dilations}) {
    key.insert(key.end(), list->begin(), list->end());
  }
  return key;
}

std::vector<int64_t> DnnConv::form() const {
  constexpr int64_t widest_load = 16;  // elements
  const auto alignment = [](int64_t channels) { return std::gcd(channels, widest_load); };
  std::vector<int64_t> form = {2,    int64_t(dtype),  tf32,
                               bias, residual,        relu,
                               groups, alignment(w[1]), alignment(w[0]),
                               x_strides[1] == 1, w_strides[1] == 1};
  form.insert(form.end(), w.begin() + 2, w.end());
  for (const auto* list : {&strides, &dilations}) {
    form.insert(form.end(), list->begin(), list->end());
  }
  return form;
}

// That there is no engine takes the library 60 ms to say, for each layer of a model: it is asked
// once for a form, and what it said is kept as plans are.
std::unique_ptr<DnnPlan> Dnn::fused(const DnnConv& conv) {
  const std::vector<int64_t> form = conv.form();
  const Digest key = digest(form);
  const DiskCache kept(cache_folder(), "plan");
  auto known = refused_.find(form);
  if (known == refused_.end()) {
    if (const auto text = kept.read(key)) {
      const auto* first = reinterpret_cast<const char*>(text->data());
      known = refused_.emplace(form, std::string(first, text->size())).first;
    }
  }
  if (known != refused_.end()) throw DnnRefusal{known->second, true};
  try {
    return build(functions_, handle_, conv);
  } catch (const DnnRefusal& refusal) {
    if (refusal.lasts) {
      refused_.emplace(form, refusal.reason);
      kept.write(key, std::as_bytes(std::span(refusal.reason)));
    }
    throw;
  }
}

std::shared_ptr<const DnnRun> Dnn::convolution(const DnnConv& conv, std::string& reason) {
  std::vector<int64_t> ids = {x_id, w_id, y_id};
  if (conv.bias) ids.push_back(bias_id);
  if (conv.residual) ids.push_back(residual_id);
  const auto make = [&] {
    return conv.is_fused() ? fused(conv) : build(functions_, handle_, conv);
  };
  return find(conv, ids, make, reason);
}

Digest Dnn::digest(const std::vector<int64_t>& problem) const {
  const DeviceInfo& info = driver_->info();
  Sha256 hash;
  for (const std::string& text : {std::string("cudnn plan"), version_, info.name,
                                  std::to_string(api::loader().driver_version())}) {
    hash.add_text(text);
  }
  hash.add(std::as_bytes(std::span(problem)));
  return hash.finish();
}

std::unique_ptr<DnnPlan> Dnn::stored(const Digest& key) const {
  const auto bytes = DiskCache(cache_folder(), "plan").read(key);
  if (!bytes) return nullptr;
  try {
    const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    return plan_of_text(functions_, handle_, text);
  } catch (const DnnRefusal&) {
    return nullptr;  // of a library that only looks the same: made anew
  }
}

void Dnn::store(const Digest& key, const DnnPlan& plan) const {
  const std::string text = text_of_plan(functions_, plan);
  if (text.empty()) return;
  DiskCache(cache_folder(), "plan").write(key, std::as_bytes(std::span(text)));
}

void Dnn::run(const DnnRun& run, std::span<void* const> addresses, void* workspace,
              Stream stream) {
  const uintptr_t misplaced = reinterpret_cast<uintptr_t>(workspace) % workspace_alignment;
  void* aligned = static_cast<std::byte*>(workspace) +
                  (misplaced ? workspace_alignment - misplaced : 0);
  const std::lock_guard lock(mutex_);
  const Current current = driver_->make_current();
  try {
    Descriptor pack(functions_, dnn::variant_pack);
    pack.set(pack_ids, run.ids);
    pack.set(pack_pointers, dnn::pointer, int64_t(addresses.size()), addresses.data());
    pack.set(pack_workspace, dnn::pointer, aligned);
    pack.finalize();
    int status = functions_.set_stream(handle_, stream);
    if (status == 0) status = functions_.execute(handle_, run.plan->plan, pack.raw());
    if (status != 0) throw DnnRefusal{"status " + std::to_string(status)};
  } catch (const DnnRefusal& refusal) {
    throw Error(ErrorKind::device, "cudnnBackendExecute failed: " + refusal.reason);
  }
}

}  // namespace rlx::cuda
