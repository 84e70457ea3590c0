import type { Heartbeat, HeartbeatRecorded } from '#model/node-protocol.ts'
import type { CheckedClock } from './checked-clock.ts'
import { type Control, ControlError } from './control-client.ts'
import type { HeartbeatSink } from './heartbeat.ts'
import type { SnapshotFeed } from './snapshot-feed.ts'

/** Returns where a process sends its heartbeats: to control, and what they show about control to the feed and the clock of the process. */
export function heartbeatSink(
  control: Pick<Control, 'sendHeartbeat'>,
  feed: Pick<SnapshotFeed, 'controlAnswered' | 'registerAgain' | 'current'>,
  clock: Pick<CheckedClock, 'monotonic' | 'observe'>,
  onRecorded: (recorded: HeartbeatRecorded, message: Heartbeat) => void = () => undefined,
): HeartbeatSink {
  return {
    async sendHeartbeat(message, signal) {
      try {
        const askedAtMs = clock.monotonic()
        const recorded = await control.sendHeartbeat(message, signal)
        clock.observe(recorded.time, askedAtMs)
        feed.controlAnswered()
        onRecorded(recorded, message)
      } catch (error) {
        // A long poll would learn of it only at its end, and the other process of the node waits for the new credential.
        if (error instanceof ControlError && error.status === 401) {
          feed.registerAgain()
          // Not joined yet: the registration says why, and what to do.
          if (feed.current() === undefined) return
        }
        throw error
      }
    },
  }
}
