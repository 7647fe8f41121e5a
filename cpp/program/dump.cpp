// Prints a Program as text: interface, constants, guards, then every stage with its nodes.
#include "core/text.h"
#include "program/fields.h"
#include "program/form.h"
#include "program/names.h"
#include "program/scalar_op.h"

namespace rlx {
namespace {

constexpr int expr_depth = 8;  // deeper expressions are shortened to the row they stand in

class Dump {
 public:
  // With `exact`, equal texts are equal programs but for the bytes of constants.
  Dump(const Program& program, std::string indent, bool exact = false)
      : p_(program), indent_(std::move(indent)), exact_(exact) {}

  std::string text() {
    if (exact_) tables();
    interface("input", p_.inputs, p_.input_names);
    for (size_t v = 0; v < p_.values.size(); ++v) declare(ValueId(v));
    for (const Guard& g : p_.guards) {
      line() << "guard " << expr(g.condition) << ": " << g.message;
      if (!g.assumption.empty()) out_ << " (assumes " << g.assumption << ")";
      out_ << "\n";
    }
    for (size_t s = 0; s < p_.stages.size(); ++s) {
      line() << "stage " << s << ": ";
      std::visit([&](const auto& stage) { print(stage); }, p_.stages[s]);
    }
    for (const StatePair& s : p_.states)
      line() << "state: output " << s.output << " continues input " << s.input << " along axis "
             << s.axis << "\n";
    interface("output", p_.outputs, p_.output_names);
    return out_.str();
  }

 private:
  Text& line() { return out_ << indent_; }

  void tables() {
    for (const ExprRow& row : p_.exprs) {
      line() << int(row.op) << " " << row.i << " " << real(row.f);
      for (ExprId arg : row.args) out_ << " " << arg;
      out_ << "\n";
    }
    for (const Symbol& s : p_.symbols)
      line() << name_of(s.kind) << " " << s.value << " " << s.index << " " << s.upper << " "
             << s.capacity << "\n";
  }

  // -- values and numbers --------------------------------------------------------------------

  static std::string ref(ValueId v) { return v < 0 ? "-" : "%" + std::to_string(v); }

  std::string typed(ValueId v) const {
    if (v < 0) return "-";
    const Value& value = p_.values[size_t(v)];
    std::string text = ref(v) + ": ";
    if (value.kind != ValueKind::tensor) text += std::string(name_of(value.kind)) + " of ";
    text += name_of(value.dtype);
    return value.kind == ValueKind::tensor ? text + dims(value.shape) : text;
  }

  std::string dims(const std::vector<ExprId>& ids) const {
    std::string text = "[";
    for (size_t k = 0; k < ids.size(); ++k) text += (k ? ", " : "") + expr(ids[k]);
    return text + "]";
  }

  std::string expr(ExprId id, int depth = 0) const {
    if (id < 0) return "-";
    if (exact_) return "#" + std::to_string(id);
    const ExprRow& row = p_.exprs[size_t(id)];
    if (row.op == ExprOp::const_int) return std::to_string(row.i);
    if (row.op == ExprOp::const_float) return real(row.f);
    if (row.op == ExprOp::symbol) return symbol(p_.symbols[size_t(row.i)]);
    if (depth == expr_depth) return "#" + std::to_string(id);
    std::string text = std::string(info_of(row.op).name) + "(";
    for (int k = 0; k < info_of(row.op).arity; ++k)
      text += (k ? ", " : "") + expr(row.args[k], depth + 1);
    return text + ")";
  }

  static std::string symbol(const Symbol& s) {
    if (!s.name.empty()) return s.name;
    return std::string(name_of(s.kind)) + "(" + ref(s.value) + ", " + std::to_string(s.index) + ")";
  }

  std::string real(double f) const {
    Text text;
    if (!exact_) {
      text << f;
      return text.str();
    }
    char digits[32];
    text << std::string_view(digits, std::to_chars(digits, digits + sizeof digits, f).ptr);
    return text.str();
  }

  void interface(const char* what, const std::vector<ValueId>& ids,
                 const std::vector<std::string>& names) {
    for (size_t k = 0; k < ids.size(); ++k)
      line() << what << " '" << names[k] << "' " << typed(ids[k]) << "\n";
  }

  void declare(ValueId v) {
    const Value& value = p_.values[size_t(v)];
    if (value.constant >= 0) {
      const Constant& constant = p_.constants[size_t(value.constant)];
      line() << "constant " << typed(v) << " ";
      if (exact_) out_ << value.constant << " of " << constant.bytes << "\n";
      else out_ << constant.source << "\n";
    } else if (value.alias_of >= 0) {
      line() << "alias " << typed(v) << " = " << ref(value.alias_of) << "\n";
    }
  }

  // -- fields of primitives ------------------------------------------------------------------

  std::string field(bool b) const { return b ? "true" : "false"; }
  std::string field(int i) const { return std::to_string(i); }
  std::string field(int64_t i) const { return std::to_string(i); }
  std::string field(double f) const { return real(f); }
  std::string field(const std::string& s) const { return s; }
  std::string field(DType t) const { return name_of(t); }
  std::string field(const std::optional<double>& f) const { return f ? real(*f) : "none"; }
  std::string field(const RegionPtr& r) const { return r ? "{" + struct_fields(*r) + "}" : "none"; }
  template <NamedEnum E>
  std::string field(E e) const { return std::string(name_of(e)); }
  template <class S>
    requires requires { Fields<S>::list; }
  std::string field(const S& s) const { return "(" + struct_fields(s) + ")"; }

  std::string field(const RegionOp& op) const {
    const bool scalar = op.kind == RegionOp::Kind::scalar;
    std::string text(scalar ? info_of(op.op).name : name_of(op.kind));
    for (int arg : op.args)
      if (arg >= 0) text += " " + std::to_string(arg);
    if (op.kind == RegionOp::Kind::dim) text += " " + expr(op.dim);
    if (op.kind == RegionOp::Kind::constant)
      text += " " + (is_float(op.dtype) || is_complex(op.dtype) ? real(op.f)
                                                                : std::to_string(op.i));
    return text + " " + name_of(op.dtype);
  }

  template <class T>
  std::string field(const std::vector<T>& list) const {
    std::string text = "[";
    for (size_t k = 0; k < list.size(); ++k) text += (k ? ", " : "") + field(list[k]);
    return text + "]";
  }

  std::string dim_text(ExprId id) const { return expr(id); }
  std::string dim_text(const std::vector<ExprId>& ids) const { return dims(ids); }
  template <class T>
  std::string dim_text(const T& other) const { return field(other); }  // no dim field has this type

  template <class S>
  std::string struct_fields(const S& s) const {
    std::string text;
    for_each_field<S>([&](const auto& f) {
      text += (text.empty() ? "" : ", ") + std::string(f.name) + "=";
      text += f.dim ? dim_text(s.*f.member) : field(s.*f.member);
    });
    return text;
  }

  // -- stages --------------------------------------------------------------------------------

  std::string refs(const std::vector<ValueId>& ids) const {
    std::string text = "(";
    for (size_t k = 0; k < ids.size(); ++k) text += (k ? ", " : "") + ref(ids[k]);
    return text + ")";
  }

  void origin(int32_t id) {
    if (id >= 0) {
      const Origin& o = p_.origins[size_t(id)];
      out_ << "  ; " << o.op << " '" << o.name << "'";
      for (const std::string& other : o.also) out_ << " '" << other << "'";
    }
    out_ << "\n";
  }

  std::string results(const std::vector<ValueId>& ids) const {
    std::string text;
    for (ValueId v : ids) text += (text.empty() ? "" : ", ") + typed(v);
    return text;
  }

  void print(const Segment& segment) {
    out_ << "Segment\n";
    for (const Node& node : segment.nodes) {
      line() << "  " << results(node.outputs) << " = " << name_of(node.prim) << refs(node.inputs)
             << " {" << std::visit([&](const auto& p) { return struct_fields(p); }, node.prim)
             << "}";
      origin(node.origin);
    }
  }

  void child(const char* what, const ProgramPtr& program) {
    line() << "  " << what << ":\n" << Dump(*program, indent_ + "    ", exact_).text();
  }

  void print(const If& stage) {
    out_ << results(stage.outputs) << " = If " << ref(stage.condition) << refs(stage.captures);
    origin(stage.origin);
    child("then", stage.then_program);
    child("else", stage.else_program);
  }

  void print(const Loop& stage) {
    out_ << results(stage.outputs) << " = Loop trips " << ref(stage.trip_count) << " while "
         << ref(stage.condition) << " carried " << refs(stage.carried) << " captures "
         << refs(stage.captures);
    origin(stage.origin);
    child("body", stage.body);
  }

  void print(const Scan& stage) {
    out_ << results(stage.outputs) << " = Scan states " << refs(stage.states) << " over "
         << refs(stage.scan_inputs) << " axes " << field(stage.input_axes) << " to axes "
         << field(stage.output_axes) << " captures " << refs(stage.captures);
    origin(stage.origin);
    child("body", stage.body);
  }

  void print(const SequenceOp& stage) {
    out_ << results(stage.outputs) << " = Sequence " << name_of(stage.kind) << refs(stage.inputs);
    origin(stage.origin);
  }

  void print(const Host& stage) {
    out_ << results(stage.outputs) << " = Host " << stage.function << refs(stage.inputs);
    origin(stage.origin);
  }

  const Program& p_;
  std::string indent_;
  const bool exact_;
  Text out_;
};

}  // namespace

std::string dump(const Program& program) { return Dump(program, "").text(); }

std::string form_of(const Program& program) { return Dump(program, "", true).text(); }

}  // namespace rlx
