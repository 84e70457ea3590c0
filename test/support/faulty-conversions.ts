/** Conversions inside the test process that hang, fail or die as the names of the views say. src/lib/process-pool.test.ts proves how real processes end. */
import type { ConversionPool } from '#delivery/convert/conversion-pool.ts'
import type { ConvertReply, ConvertTask, Step } from '#delivery/convert/worker/protocol.ts'
import { runTask } from '#delivery/convert/worker/run-task.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import type { TaskEnd, TaskOptions } from '#lib/process-pool.ts'

/** How a task ends at a step; `hung` if nothing but a kill ends it. */
type Misbehaviour = string | 'hung' | undefined

function namesOf(task: ConvertTask): readonly string[] {
  if (task.kind === 'segment') return task.views.map(({ name }) => name)
  if (task.kind === 'unit') return [task.unit.view.name]
  return task.kind === 'merge' && 'name' in task.of ? [task.of.name] : []
}

/**
 * `busy` holds its process for ever, `slow…` once it is compiled, `crash` ends it, `greedy` ends it as a limit of memory does, and `outside` as
 * the kernel does if the machine has no memory. A view `poison` or `famine` ends it before any view, and `fragile` once.
 */
export class FaultyConversions implements ConversionPool {
  readonly pids: readonly number[] = []
  readonly #clock: Clock
  readonly #onStep: (task: ConvertTask, step: Step) => void
  #hasDied = false

  constructor(clock: Clock = systemClock, onStep: (task: ConvertTask, step: Step) => void = () => undefined) {
    this.#clock = clock
    this.#onStep = onStep
  }

  async run(task: ConvertTask, { timeoutMs, signal, onReport, onQuestion }: TaskOptions<Step>): Promise<TaskEnd<ConvertReply>> {
    signal.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<TaskEnd<ConvertReply>>()
    const limit = (ms: number) => this.#clock.setTimer(() => resolve({ timedOut: true }), ms)
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    const misbehave = this.#misbehaviourOf(task)
    let cancelTimer = limit(timeoutMs)
    let hasEnded = false
    const report = (step: Step): void => {
      if (!hasEnded) {
        this.#onStep(task, step)
        cancelTimer()
        cancelTimer = limit(onReport?.(step) ?? timeoutMs)
      }
      const end = hasEnded ? 'hung' : misbehave(step)
      hasEnded ||= end !== undefined
      if (end !== undefined && end !== 'hung') resolve({ exited: end })
      // Nothing of this task is done any more.
      if (hasEnded) throw new Error('the process has ended')
    }
    const work = runTask(task, report, async (question) => onQuestion?.(question)).then((reply) => hasEnded || resolve({ reply }))
    try {
      return await promise
    } finally {
      hasEnded = true
      cancelTimer()
      signal.removeEventListener('abort', onAbort)
      await work
    }
  }

  async stop(): Promise<void> {}

  #misbehaviourOf(task: ConvertTask): (step: Step) => Misbehaviour {
    const views = namesOf(task)
    const compiled = new Set<string>()
    return (step) => {
      const names = step.views.map((position) => views[position] ?? '')
      const isSlow = names.some((name) => name.startsWith('slow') && compiled.has(name))
      for (const name of names) compiled.add(name)
      const isOfRecords = names.length === 0
      if (names.includes('busy') || isSlow) return 'hung'
      if (names.includes('crash') || (isOfRecords && views.includes('poison'))) return 'killed by SIGSEGV'
      if (names.includes('greedy')) return 'killed by SIGABRT'
      if (names.includes('outside') || (isOfRecords && views.includes('famine'))) return 'killed by SIGKILL'
      if (!isOfRecords || !views.includes('fragile') || this.#hasDied) return undefined
      this.#hasDied = true
      return 'killed by SIGSEGV'
    }
  }
}
