/** Messages between a supervisor and its children. */

/** In the environment of each child. A channel alone does not say whose child it is: other programs that start Node open one as well. */
export const supervisedEnvironment = { SUPERVISED_BY: 'inlet' } as const

export function isSupervised({ SUPERVISED_BY }: Readonly<Record<string, string | undefined>>): boolean {
  return SUPERVISED_BY === supervisedEnvironment.SUPERVISED_BY && process.channel !== undefined
}

/** From a child, once: it has started, or it cannot start for this reason. Any other message is for the owner of the supervisor. */
export type ChildReport = { readonly type: 'ready' } | { readonly type: 'failed'; readonly reason: string }

export function readChildReport(message: unknown): ChildReport | undefined {
  const { type, reason } = fieldsOf(message)
  if (type === 'ready') return { type }
  return type === 'failed' && typeof reason === 'string' ? { type, reason } : undefined
}

/**
 * To a child. Until `start` it only loads its code. `stop` is not a signal, because children ignore signals: service managers and
 * terminals send them to all processes at once.
 */
export type SupervisorMessage = { readonly type: 'start' | 'stop' }

export function isMessage(message: unknown, type: SupervisorMessage['type']): boolean {
  return fieldsOf(message)['type'] === type
}

/** The fields of a message, none if it is not an object. */
export function fieldsOf(message: unknown): Readonly<Record<string, unknown>> {
  return typeof message === 'object' && message !== null ? { ...message } : {}
}
