/* Preloaded into peers whose matrix products are MKL's: on a processor that is not Intel's MKL asks these two
   functions, which it exports, and takes narrower kernels than the processor has unless they say yes. */
int mkl_serv_intel_cpu_true(void) { return 1; }
int mkl_serv_intel_cpu(void) { return 1; }
