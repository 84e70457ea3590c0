/**
 * Decides when this process stops.
 *
 * Owns: signals, the message of the supervisor, and the end of a parent. Does not own: how the process stops.
 * Law: one request may arrive as several signals, because service managers signal every process and npm forwards what its group got as
 * well. Only a later signal is a repetition. Under a supervisor signals are ignored, so that the processes stop in order.
 */
import type { EventEmitter } from 'node:events'
import type { Clock } from '#lib/clock.ts'
import { isMessage } from '#node/child-messages.ts'

/** Signals within this time are one request. */
const sameRequestMs = 1_000
const parentPollMs = 1_000

/** The reason if the supervisor ended first: another one may wait for the files of this process. */
export const supervisorExited = 'supervisor exited'

export type StopRequestOptions = {
  /** Emits signals and what the supervisor sends: `process`. */
  readonly source: EventEmitter
  readonly isSupervised: boolean
  /** Whether a standard stream is a terminal. Without one, as under nohup, a terminal that closes has no effect. */
  readonly hasTerminal: boolean
  /** Returns the current id of the parent, if that is npm or a shell of npm. They do not forward every signal that ends them. */
  readonly npmPid?: (() => number) | undefined
  readonly clock: Clock
  /** Called when the request is repeated: the process has to end at once. */
  readonly onRepeated: () => void
}

/** Resolves with the reason when the process has to stop. */
export function stopRequest({
  source,
  isSupervised,
  hasTerminal,
  npmPid,
  clock,
  onRepeated,
}: StopRequestOptions): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let firstAt: number | undefined
  const onSignal = (name: string) => {
    if (isSupervised) return
    firstAt ??= clock.monotonic()
    if (clock.monotonic() - firstAt > sameRequestMs) onRepeated()
    resolve(name)
  }
  let outlivesNpm = false
  const onHangUp = () => {
    if (hasTerminal) onSignal('SIGHUP')
    // Node does not ignore SIGHUP under nohup, so npm ends.
    else outlivesNpm = true
  }
  source.on('SIGTERM', () => onSignal('SIGTERM'))
  source.on('SIGINT', () => onSignal('SIGINT'))
  source.on('SIGHUP', onHangUp)
  source.on('message', (message) => {
    if (isMessage(message, 'stop')) resolve('stopped by the supervisor')
  })
  source.on('disconnect', () => resolve(supervisorExited))
  if (npmPid !== undefined) {
    onChange(npmPid, clock, () => {
      if (!outlivesNpm) resolve('npm exited')
    })
  }
  return promise
}

/** Calls back a while after a value has changed: by then a signal that had the same cause has arrived. */
function onChange(read: () => number, clock: Clock, callback: () => void): void {
  const first = read()
  const check = () => clock.setTimer(read() === first ? check : callback, parentPollMs)
  check()
}
