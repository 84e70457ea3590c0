/** Converts one request after another, in a thread of its own: worker-thread.ts starts it. */
import { parentPort } from 'node:worker_threads'
import { AppError, type ErrorCode } from '#errors.ts'
import { type ConversionTask, type Converted, convert } from './convert.ts'

/** Reply of the thread to each task. */
export type ConversionAnswer =
  | { readonly converted: Converted }
  | { readonly refused: { readonly code: ErrorCode; readonly message: string } }

parentPort?.on('message', (task: ConversionTask) => {
  const answer = answerTo(task)
  const moved = 'converted' in answer ? answer.converted.payload.map(({ buffer }) => buffer) : []
  parentPort?.postMessage(answer, moved)
})

function answerTo(task: ConversionTask): ConversionAnswer {
  try {
    return { converted: convert(task) }
  } catch (error) {
    // Any other error is a fault of this program: it ends the thread, and is reported as one.
    if (!(error instanceof AppError)) throw error
    return { refused: { code: error.code, message: error.message } }
  }
}
