/** A conversion process that fails as the names of the views say: see bad-conversions.ts. */

import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ConvertTask, Step } from '#delivery/convert/worker/protocol.ts'
import { runTask } from '#delivery/convert/worker/run-task.ts'
import { serveTasks } from '#lib/serve-tasks.ts'

function viewsOf(task: ConvertTask): readonly { readonly name: string }[] {
  if (task.kind === 'segment') return task.views
  if (task.kind === 'unit') return [task.unit.view]
  return task.kind === 'merge' && 'name' in task.of ? [task.of] : []
}

function run(task: ConvertTask, report: (step: Step) => void) {
  const views = viewsOf(task)
  const seen = new Set<string>()
  const misbehave = (step: Step) => {
    report(step)
    const names = step.views.map((position) => views[position]?.name ?? '')
    if (names.includes('busy')) for (;;);
    if (names.includes('crash')) process.kill(process.pid, 'SIGSEGV')
    if (names.includes('greedy')) process.kill(process.pid, 'SIGABRT')
    if (names.includes('outside')) process.kill(process.pid, 'SIGKILL')
    // Its first step compiles it.
    if (names.some((name) => name.startsWith('slow') && seen.has(name))) for (;;);
    for (const name of names) seen.add(name)
    const isOfRecords = names.length === 0
    if (isOfRecords && views.some(({ name }) => name === 'poison')) process.kill(process.pid, 'SIGSEGV')
    if (isOfRecords && views.some(({ name }) => name === 'famine')) process.kill(process.pid, 'SIGKILL')
    const died = join(task.directory, 'died')
    if (isOfRecords && views.some(({ name }) => name === 'fragile') && !existsSync(died)) {
      writeFileSync(died, '')
      process.kill(process.pid, 'SIGSEGV')
    }
  }
  return runTask(task, misbehave)
}

serveTasks(run, { niceness: 0 })
