import { errorMessage } from '#lib/error-message.ts'

/** A failure that the segment did not cause: a later attempt may succeed, however many have failed. */
export class TransientError extends Error {
  override readonly name: string = 'TransientError'
}

/** Something is missing that the next snapshot may contain. */
export class NotConfiguredError extends TransientError {
  override readonly name = 'NotConfiguredError'
}

/** Whether the same work may succeed later. A full disk and exhausted file descriptors are transient too. */
export function isTransient(error: unknown): boolean {
  if (error instanceof TransientError) return true
  return /ENOSPC|EDQUOT|EMFILE|No space left|Too many open files/i.test(errorMessage(error))
}
