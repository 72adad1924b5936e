# Tests of the learner's process: everything around the algorithms, against fakes.
datacom_test(NAME learner_process_test CXX 17
  SRCS process_schedule_test.cc process_critic_watch_test.cc process_checkpoint_test.cc process_ledger_test.cc process_evaluations_test.cc process_trainer_test.cc
       process_decoder_test.cc process_metrics_test.cc process_pretraining_test.cc
  DEPS datacom::learner_process)
# With thread_stacks.cc as in datacom-learner: it serves /metrics beside LibTorch.
datacom_test(NAME learner_service_test CXX 17
  SRCS process_service_test.cc process_run_test.cc ${CMAKE_SOURCE_DIR}/learner/thread_stacks.cc
  DEPS datacom::learner_process datacom::learner_client ${CMAKE_DL_LIBS})
target_link_options(learner_service_test PRIVATE "LINKER:--export-dynamic-symbol=pthread_attr_setstacksize")
