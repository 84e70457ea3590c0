/** What a supervisor and its children tell each other. */
import { z } from 'zod'

/** In the environment of each child. A channel alone does not say whose child it is: other programs that start Node open one as well. */
export const supervisedEnvironment = { SUPERVISED_BY: 'inlet' } as const

export function isSupervised({ SUPERVISED_BY }: Readonly<Record<string, string | undefined>>): boolean {
  return SUPERVISED_BY === supervisedEnvironment.SUPERVISED_BY && process.channel !== undefined
}

/** From a child, once: it has started, or it cannot start for this reason. Any other message is for the owner of the supervisor. */
export const ChildReport = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready') }),
  z.object({ type: z.literal('failed'), reason: z.string() }),
])
export type ChildReport = z.infer<typeof ChildReport>

/**
 * To a child. Until `start` it only loads its code. `stop` is not a signal, because children ignore signals: service managers and
 * terminals send them to all processes at once.
 */
export const SupervisorMessage = z.object({ type: z.enum(['start', 'stop']) })
export type SupervisorMessage = z.infer<typeof SupervisorMessage>
