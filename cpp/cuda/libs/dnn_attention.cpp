// Attention graphs: one operation where cuDNN has it, else the composition that its engines match.
#include "cuda/libs/dnn.h"

namespace rlx::cuda {
namespace {

constexpr int sdpa_q = 2800, sdpa_k = 2801, sdpa_v = 2802, sdpa_o = 2803, sdpa_scale = 2805;
constexpr int matmul_type = 1500, matmul_a = 1520, matmul_b = 1521, matmul_c = 1522,
              matmul_form = 1523;
constexpr int reduce_kind = 1600, reduce_type = 1601, reduce_x = 1610, reduce_y = 1611,
              reduce_form = 1612;
constexpr int operation_form = 750, operation_x = 751, operation_b = 752, operation_y = 753,
              operation_t = 758;
constexpr int pointwise_mode = 0, pointwise_precision = 1, pointwise_axis = 9;
constexpr int mode_sub = 9, mode_div = 6, mode_exp = 13, mode_log = 15, mode_row_at_least = 303,
              mode_index = 501, mode_select = 601;
constexpr int reduce_add = 0, reduce_max = 3;

constexpr int most_lengths = 8;

enum : int64_t { q_id = 1, k_id, v_id, y_id, scale_id, infinity_id, first_virtual };

using Shape = std::vector<int64_t>;

Shape dense(const Shape& dims) {
  Shape strides(dims.size(), 1);
  for (size_t k = dims.size(); k-- > 1;) strides[k - 1] = strides[k] * dims[k];
  return strides;
}

class Composition {
 public:
  Composition(const DnnFunctions& f, void* handle, const DnnAttention& a, int type)
      : graph_(f, handle), a_(a), type_(type),
        scores_{a.batch, a.heads, a.queries, a.keys}, rows_{a.batch, a.heads, a.queries, 1} {}

  std::unique_ptr<DnnPlan> build() {
    const Shape one = {1, 1, 1, 1};
    Descriptor& q = graph_.tensor(q_id, type_, Shape{a_.batch, a_.heads, a_.queries, a_.size},
                                  a_.q_strides);
    // The keys are described transposed; their memory is as it is.
    const Shape& ks = a_.k_strides;
    Descriptor& k = graph_.tensor(k_id, type_, Shape{a_.batch, a_.kv_heads, a_.size, a_.keys},
                                  Shape{ks[0], ks[1], ks[3], ks[2]});
    Descriptor& v = graph_.tensor(
        v_id, type_, Shape{a_.batch, a_.kv_heads, a_.keys, a_.value_size}, a_.v_strides);
    Descriptor& y = graph_.tensor(
        y_id, type_, Shape{a_.batch, a_.heads, a_.queries, a_.value_size}, a_.y_strides);
    Descriptor& scale = graph_.tensor(scale_id, dnn::data_float, one, one, false, true);
    Descriptor* s = &product(q, k, made(scores_));
    s = &apply(dnn::mul, *s, &scale, made(scores_));
    if (a_.causal) s = &masked(*s);
    product(softmax(*s), v, y);
    return graph_.finish({.compile = true});
  }

 private:
  Descriptor& made(const Shape& dims, int type = dnn::data_float) {
    return graph_.tensor(next_++, type, dims, dense(dims), true);
  }

  Descriptor& apply(int mode, const Descriptor& x, const Descriptor* b, Descriptor& y) {
    graph_.pointwise(mode, x, b, y);
    return y;
  }

  Descriptor& product(const Descriptor& a, const Descriptor& b, Descriptor& c) {
    Descriptor& form = graph_.part(dnn::matmul);
    form.set(matmul_type, dnn::data_type, int{dnn::data_float});
    form.finalize();
    Descriptor& operation = graph_.part(dnn::matmul_operation);
    operation.set(matmul_a, a);
    operation.set(matmul_b, b);
    operation.set(matmul_c, c);
    operation.set(matmul_form, form);
    operation.finalize();
    graph_.add_operation(operation);
    return c;
  }

  Descriptor& reduce(int kind, const Descriptor& x) {
    Descriptor& y = made(rows_);
    Descriptor& form = graph_.part(dnn::reduction);
    form.set(reduce_kind, dnn::reduction_operator, kind);
    form.set(reduce_type, dnn::data_type, int{dnn::data_float});
    form.finalize();
    Descriptor& operation = graph_.part(dnn::reduction_operation);
    operation.set(reduce_x, x);
    operation.set(reduce_y, y);
    operation.set(reduce_form, form);
    operation.finalize();
    graph_.add_operation(operation);
    return y;
  }

  Descriptor& form(int mode, int precision, int64_t axis = -1) {
    Descriptor& made = graph_.part(dnn::pointwise);
    made.set(pointwise_mode, dnn::pointwise_mode, mode);
    made.set(pointwise_precision, dnn::data_type, precision);
    if (axis >= 0) made.set(pointwise_axis, dnn::int64, axis);
    made.finalize();
    return made;
  }

  Descriptor& operate(const Descriptor& form, const Descriptor& x, const Descriptor* b,
                      const Descriptor* condition, Descriptor& y) {
    Descriptor& operation = graph_.part(dnn::pointwise_operation);
    operation.set(operation_form, form);
    operation.set(operation_x, x);
    if (b) operation.set(operation_b, *b);
    if (condition) operation.set(operation_t, *condition);
    operation.set(operation_y, y);
    operation.finalize();
    graph_.add_operation(operation);
    return y;
  }

  // Minus infinity where the column lies behind the row.
  Descriptor& masked(const Descriptor& s) {
    Descriptor& row = operate(form(mode_index, dnn::data_float, 2), s, nullptr, nullptr,
                              made(scores_, dnn::data_int32));
    Descriptor& column = operate(form(mode_index, dnn::data_float, 3), s, nullptr, nullptr,
                                 made(scores_, dnn::data_int32));
    Descriptor& seen = operate(form(mode_row_at_least, dnn::data_boolean), row, &column, nullptr,
                               made(scores_, dnn::data_boolean));
    const Shape one = {1, 1, 1, 1};
    Descriptor& infinity = graph_.tensor(infinity_id, dnn::data_float, one, one, false, true);
    return operate(form(mode_select, dnn::data_float), s, &infinity, &seen, made(scores_));
  }

  // The logarithm and its sum are read by nobody, but without them no engine knows the graph.
  Descriptor& softmax(const Descriptor& s) {
    Descriptor& most = reduce(reduce_max, s);
    Descriptor& shifted = apply(mode_sub, s, &most, made(scores_));
    Descriptor& exponentials = apply(mode_exp, shifted, nullptr, made(scores_));
    Descriptor& sum = reduce(reduce_add, exponentials);
    Descriptor& logarithm = apply(mode_log, sum, nullptr, made(rows_));
    apply(dnn::add, most, &logarithm, made(rows_));
    return apply(mode_div, exponentials, &sum, made(scores_, type_));
  }

  DnnGraph graph_;
  const DnnAttention& a_;
  const int type_;
  const Shape scores_, rows_;
  int64_t next_ = first_virtual;
};

std::unique_ptr<DnnPlan> one_operation(const DnnFunctions& f, void* handle, const DnnAttention& a,
                                       int type) {
  DnnGraph graph(f, handle);
  const Shape one = {1, 1, 1, 1};
  Descriptor& q = graph.tensor(q_id, type, Shape{a.batch, a.heads, a.queries, a.size}, a.q_strides);
  Descriptor& k = graph.tensor(k_id, type, Shape{a.batch, a.kv_heads, a.keys, a.size}, a.k_strides);
  Descriptor& v = graph.tensor(v_id, type, Shape{a.batch, a.kv_heads, a.keys, a.value_size},
                               a.v_strides);
  Descriptor& y = graph.tensor(y_id, type, Shape{a.batch, a.heads, a.queries, a.value_size},
                               a.y_strides);
  Descriptor& scale = graph.tensor(scale_id, dnn::data_float, one, one, false, true);
  Descriptor& operation = graph.part(dnn::sdpa_operation);
  operation.set(sdpa_q, q);
  operation.set(sdpa_k, k);
  operation.set(sdpa_v, v);
  operation.set(sdpa_o, y);
  operation.set(sdpa_scale, scale);
  operation.finalize();
  graph.add_operation(operation);
  return graph.finish({.compile = true});
}

}  // namespace

std::vector<int64_t> DnnAttention::key() const {
  std::vector<int64_t> key = {1,    int64_t(dtype), batch,      heads, kv_heads, queries, keys,
                              size, value_size,     int(causal)};
  for (const auto* list : {&q_strides, &k_strides, &v_strides, &y_strides}) {
    key.insert(key.end(), list->begin(), list->end());
  }
  return key;
}

std::vector<int64_t> DnnAttention::form() const {
  return {int64_t(dtype), heads, kv_heads, size, value_size, int(causal)};
}

std::shared_ptr<const DnnRun> Dnn::attention(const DnnAttention& a, std::string& reason) {
  const int type = a.dtype == DType::float16    ? dnn::data_half
                   : a.dtype == DType::bfloat16 ? dnn::data_bfloat16
                                                : dnn::data_float;
  std::vector<int64_t> ids = {q_id, k_id, v_id, y_id, scale_id};
  if (a.causal) ids.push_back(infinity_id);
  // In float32 the one operation's engine reads memory that is not its own.
  const bool one = !a.causal && type != dnn::data_float;
  const auto build = [&] {
    int& compiled = lengths_[a.form()];
    if (compiled == most_lengths) {
      throw DnnRefusal{"cuDNN would compile a plan for each of many lengths"};
    }
    ++compiled;
    return one ? one_operation(functions_, handle_, a, type)
               : Composition(functions_, handle_, a, type).build();
  };
  return find(a, ids, build, reason);
}

}  // namespace rlx::cuda
