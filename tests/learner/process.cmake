# Tests of the learner's process: everything around the algorithms, against fakes.
datacom_test(NAME learner_process_test
  SRCS process_schedule_test.cc process_critic_watch_test.cc process_ledger_test.cc process_evaluations_test.cc process_trainer_test.cc
       process_decoder_test.cc process_new_rows_test.cc process_epoch_decoder_test.cc process_metrics_test.cc process_pretraining_test.cc process_algorithm_setup_test.cc
  DEPS datacom::learner_process)
datacom_test(NAME learner_service_test SRCS process_service_test.cc process_run_test.cc
  DEPS datacom::learner_process datacom::learner_client)
