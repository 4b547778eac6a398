"""Are the instruments fit for use? Several of them on workloads whose answer is known, as a study of cbench's."""
