/** A process that inspects or runs a statement of a user, for its parent process. It can be killed at any time, whatever the statement does. */
import { Database } from '#duckdb/database.ts'
import { MiB } from '#lib/bytes.ts'
import { serveTasks } from '#lib/serve-tasks.ts'
import type { QueryReply, QueryTask } from './query-protocol.ts'
import { runStatement } from './run-statement.ts'
import { inspectStatement, StatementRefused } from './statement.ts'

/** Other processes on the machine have priority. */
const niceness = 10
const inspectMemoryBytes = 128 * MiB

// A process that had data of an account gets no task of another one.
serveTasks<QueryTask, QueryReply>(reply, { niceness, usesUp: (task) => 'run' in task })

async function reply(task: QueryTask): Promise<QueryReply> {
  try {
    if ('inspect' in task) return { tables: await inspect(task.inspect) }
    return { json: Buffer.from(JSON.stringify(await runStatement(task.run, task))) }
  } catch (error) {
    if (error instanceof StatementRefused) return { rejected: error.problem }
    return { crashed: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}

async function inspect(sql: string) {
  const database = await Database.open({ directories: [], memoryBytes: inspectMemoryBytes })
  try {
    return await inspectStatement(await database.connect(), sql)
  } finally {
    database.close()
  }
}
