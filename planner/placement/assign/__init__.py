"""Many jobs at once: who gets which place, who waits, and what all of it costs at least.

One subject a file.  `rows` what is scarce · `kinds` jobs that are alike, and where they may lie · `board` who lies where, and what is left ·
`turns` one by one, in whose order · `relax` the linear relaxation · `whole` from its fractions to jobs · `exact` small ones to the tick ·
`keep` what stays where an earlier plan put it · `check` all rules once more, in integers · `solve` the order of these · `wait` why a job has no place.
Pure, and without a clock: no limit of time, so that the same inputs give the same bytes on any machine.
"""
