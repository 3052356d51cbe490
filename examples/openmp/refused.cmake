# -DCC=superstep-cc -DFOLDER=...: what the translator refuses, or keeps off the tiles, and how it says so.
file(MAKE_DIRECTORY ${FOLDER})
function(expect name code words)
  file(WRITE ${FOLDER}/${name}.c "${code}")
  execute_process(COMMAND ${CC} --explain ${name}.c -E-omp WORKING_DIRECTORY ${FOLDER} OUTPUT_QUIET ERROR_VARIABLE said)
  string(FIND "${said}" "${words}" at)
  if(at LESS 0)
    message(FATAL_ERROR "${name}: expected\n${words}\nand had\n${said}")
  endif()
endfunction()
expect(task "void f(int *a) {\n#pragma omp target map(tofrom: a[0:4])\n  {\n#pragma omp task\n    a[0] = 1;\n  }\n}\n"
       "task.c:4:1: refused: clause: task inside a target region")
expect(chase "struct s { struct s *next; int v; };\nvoid f(struct s *p) {\n#pragma omp target map(tofrom: p[0:4])\n  p->next->v = 1;\n}\n"
       "chase.c:3:1: the host: pointer-chase")
expect(call "int g(int);\nvoid f(int *a) {\n#pragma omp target map(tofrom: a[0:4])\n  a[0] = g(1);\n}\n"
       "call.c:3:1: the host: host-call: g is not in this file (line 4)")
expect(scatter "void f(int *a, int *b) {\n#pragma omp target teams distribute parallel for map(tofrom: a[0:4], b[0:4])\n  for (int i = 0; i < 4; i++) a[b[i]] = i;\n}\n"
       "scatter.c:2:1: one tile: not-affine: a[b[i]] is written (line 3)")
