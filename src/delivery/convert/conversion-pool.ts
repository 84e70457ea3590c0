import { extname, join } from 'node:path'
import type { Clock } from '#lib/clock.ts'
import { ProcessPool, type ProcessPoolOptions, type TaskEnd, type TaskOptions } from '#lib/process-pool.ts'
import type { SandboxLimits } from '#lib/sandbox.ts'
import { conversionLimits } from './limits.ts'
import type { ConvertReply, ConvertTask, Step } from './worker/protocol.ts'

/** The processes that convert. */
export interface ConversionPool {
  /** Ids of the processes that run. */
  readonly pids: readonly number[]
  /** Runs a task in one process. When it settles, nothing works on the task any more. Throws the signal's reason. */
  run(task: ConvertTask, options: TaskOptions<Step>): Promise<TaskEnd<ConvertReply>>
  stop(): Promise<void>
}

const program = join(import.meta.dirname, 'worker', `convert-worker${extname(import.meta.filename)}`)

export function createConversionPool(
  options: { readonly clock: Clock } & Pick<ProcessPoolOptions, 'commandLine' | 'cwd'>,
): ConversionPool {
  return new ProcessPool({ program, idleMs: conversionLimits.idleMs, ...options })
}

/** Returns what a process may use that converts with so much memory. */
export function conversionBounds(memoryBytes: number): SandboxLimits {
  const { memoryFactor, fileBytesMax: fileBytes } = conversionLimits
  return { memoryBytes: memoryFactor * memoryBytes, fileBytes }
}
