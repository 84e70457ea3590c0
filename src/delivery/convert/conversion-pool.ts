import { extname, join } from 'node:path'
import type { Clock } from '#lib/clock.ts'
import { ProcessPool, type ProcessPoolOptions } from '#lib/process-pool.ts'
import type { SandboxLimits } from '#lib/sandbox.ts'
import { deliveryLimits } from '../segments/limits.ts'
import type { ConvertReply, ConvertTask, Step } from './worker/protocol.ts'

/** The processes that convert. One conversion uses one at a time. */
export type ConversionPool = ProcessPool<ConvertTask, ConvertReply, Step>

const program = join(import.meta.dirname, 'worker', `convert-worker${extname(import.meta.filename)}`)

export function createConversionPool(
  options: { readonly clock: Clock } & Pick<ProcessPoolOptions, 'commandLine' | 'cwd'>,
): ConversionPool {
  return new ProcessPool({ program, idleMs: deliveryLimits.conversionIdleMs, ...options })
}

/** Returns what a process may use that converts with so much memory. */
export function conversionBounds(memoryBytes: number): SandboxLimits {
  const { conversionMemoryFactor, conversionFileBytesMax } = deliveryLimits
  return { memoryBytes: conversionMemoryFactor * memoryBytes, fileBytes: conversionFileBytesMax }
}
