/**
 * A process that converts, one task at a time, for the delivery process.
 *
 * DuckDB handles an interrupt between batches of rows, not within one: a regular expression on a few large records can run for minutes. Only
 * a process can be killed at any time.
 */
import { serveTasks } from '#lib/serve-tasks.ts'
import { runTask } from './run-task.ts'

serveTasks(runTask, { niceness: 0 })
