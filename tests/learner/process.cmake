# Tests of the learner's process: everything around the algorithms, against fakes.
datacom_test(NAME learner_process_test RPC
  ALONE dataset_draws_test.cc
  SRCS batch_decoder_test.cc batch_decoder_epoch_test.cc dataset_draws_test.cc epoch_schedule_test.cc evaluations_test.cc
       learner_metrics_test.cc learner_service_test.cc task_file_service_test.cc ledger_recorder_test.cc new_rows_test.cc prefetch_test.cc run_learner_test.cc run_records_test.cc setup_test.cc
       trainer_test.cc
  DEPS datacom::learner_process datacom::clients)
# SPDX-License-Identifier: Apache-2.0
