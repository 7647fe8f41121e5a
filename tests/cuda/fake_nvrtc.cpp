// An NVRTC for tests: a source "compiles" to itself and its options; COMPILED counts.
// BREAKS names the source that does not compile. Compiling takes COMPILE_MS, and a process
// that ends meanwhile ends with status 86, where NVRTC breaks the heap.
// A name expression's symbol is itself, that of a signature says f(float, float*, int).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "taken_down.h"
TakenDown taken_down{86};
struct Program { std::string text, name, log; };
extern "C" {
int nvrtcVersion(int* a, int* b) {
  const char* minor = std::getenv("NVRTC_MINOR");
  *a = 13;
  *b = minor ? std::atoi(minor) : 0;
  return 0;
}
int nvrtcCreateProgram(Program** p, const char* text, const char* name, int, const char**,
                       const char**) {
  *p = new Program{text, name, ""};
  return 0;
}
int nvrtcDestroyProgram(Program** p) { delete *p; return 0; }
int nvrtcAddNameExpression(Program*, const char*) { return 0; }
int nvrtcGetLoweredName(Program*, const char* expression, const char** name) {
  const bool typed = std::strstr(expression, "rlx_signature");
  *name = typed ? "_Z13rlx_signatureIFvfPfiE9rlx_sizesIJLy4ELy8ELy4EEEE" : expression;
  return 0;
}
int nvrtcCompileProgram(Program* p, int n, const char** options) {
  const char* bad = std::getenv("BREAKS");
  if (bad && p->name.find(bad) != std::string::npos) {
    p->log = "line 7: " + p->name;
    return 6;
  }
  p->text = "\177ELF" + p->text;
  for (int i = 0; i < n; ++i) {
    p->text += options[i];
    if (!std::strstr(options[i], "BROKEN")) continue;
    p->log = "line 3: no such thing";
    return 6;
  }
  const char* log = std::getenv("COMPILED");
  if (FILE* f = log ? std::fopen(log, "a") : nullptr) {
    std::fputs("x", f);
    std::fclose(f);
  }
  work("COMPILE_MS");
  return 0;
}
// As NVRTC has it: no code for a virtual architecture, nothing but LTOIR under -dlto.
bool makes(Program* p, const char* what) {
  const bool lto = p->text.find("-dlto") != std::string::npos;
  if (lto || *what == 'l') return lto && *what == 'l';
  return *what == 'p' || p->text.find("-arch=compute_") == std::string::npos;
}
int nvrtcGetCUBINSize(Program* p, size_t* n) { *n = makes(p, "cubin") * p->text.size(); return 0; }
int nvrtcGetCUBIN(Program* p, char* to) {
  std::memcpy(to, p->text.data(), p->text.size());
  return 0;
}
int nvrtcGetPTXSize(Program* p, size_t* n) { *n = makes(p, "ptx") * p->text.size(); return 0; }
int nvrtcGetLTOIRSize(Program* p, size_t* n) { *n = makes(p, "lto") * p->text.size(); return 0; }
int nvrtcGetLTOIR(Program* p, char* to) {
  std::memcpy(to, p->text.data(), p->text.size());
  return 0;
}
int nvrtcGetPTX(Program* p, char* to) { return nvrtcGetCUBIN(p, to); }
int nvrtcGetProgramLogSize(Program* p, size_t* n) { *n = p->log.size() + 1; return 0; }
int nvrtcGetProgramLog(Program* p, char* to) { std::strcpy(to, p->log.c_str()); return 0; }
int nvrtcGetNumSupportedArchs(int* n) { *n = 3; return 0; }
int nvrtcGetSupportedArchs(int* a) { a[0] = 75; a[1] = 80; a[2] = 90; return 0; }
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }
}
