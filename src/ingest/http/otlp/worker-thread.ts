import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { ConversionAnswer } from './conversion-thread.ts'
import type { ConversionThread, ThreadTask } from './export-conversions.ts'

const program = join(import.meta.dirname, `conversion-thread${extname(import.meta.filename)}`)

/** Starts conversion-thread.ts in a thread of this process, with a heap of its own. */
export function startWorkerThread(heapMiB: number, onFailure: () => void): ConversionThread {
  const worker = new Worker(program, { resourceLimits: { maxOldGenerationSizeMb: heapMiB }, name: 'otlp' })
  // It keeps no process alive.
  worker.unref()
  worker.on('error', onFailure)
  return {
    ask(task: ThreadTask) {
      const { promise, resolve, reject } = Promise.withResolvers<ConversionAnswer>()
      worker.once('message', resolve)
      worker.once('error', reject)
      worker.postMessage(task, [task.body.buffer])
      return promise.finally(() => {
        worker.off('message', resolve)
        worker.off('error', reject)
      })
    },
    async end() {
      await worker.terminate()
    },
  }
}
