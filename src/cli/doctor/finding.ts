import { errorMessage } from '#lib/error-message.ts'

/** Result of one check. Fields have these names in the JSON that scripts read. */
export type Finding = {
  readonly check: string
  readonly status: 'ok' | 'warn' | 'fail'
  readonly message: string
  /** Advice for the user; null if nothing is wrong. */
  readonly next_step: string | null
}

export const ok = (check: string, message: string): Finding => ({ check, status: 'ok', message, next_step: null })
export const warn = (check: string, message: string, next_step: string): Finding => ({
  check,
  status: 'warn',
  message,
  next_step,
})
export const fail = (check: string, message: string, next_step: string): Finding => ({
  check,
  status: 'fail',
  message,
  next_step,
})

/** Runs a check. One that throws has failed: the others still run. */
export async function attempt(
  check: string,
  next_step: string,
  work: () => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  try {
    return await work()
  } catch (error) {
    return [fail(check, errorMessage(error), next_step)]
  }
}
