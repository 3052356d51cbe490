// What a file of codelets is.
#ifndef poplar_CodeletFileType_hpp
#define poplar_CodeletFileType_hpp

namespace poplar {

enum class CodeletFileType {
  PreprocessedAsmSource,
  AsmSource,
  IrSource,
  CSource,
  CppSource,
  Object,
  Auto  // by the ending of its name
};

}  // namespace poplar

#endif
