/** A conversion process on the disk that the harness steers: `node convert-worker.ts <file with the steering>`. */
import { readFileSync } from 'node:fs'
import type { ConvertTask, Step } from '#delivery/convert/worker/protocol.ts'
import { runTask } from '#delivery/convert/worker/run-task.ts'
import { systemFiles } from '#lib/files.ts'
import { serveTasks } from '#lib/serve-tasks.ts'
import { failingFiles } from './failing-files.ts'
import { noFaults, type Steered } from './steering.ts'

const path = process.argv.at(-1) ?? ''
const steered: Steered = {
  get now() {
    try {
      return JSON.parse(readFileSync(path, 'utf8'))
    } catch {
      // Not written yet, or being written.
      return noFaults
    }
  },
}
const files = failingFiles(systemFiles, steered)

serveTasks((task: ConvertTask, report: (step: Step) => void, ask) => runTask(task, report, ask, files), { niceness: 0 })
