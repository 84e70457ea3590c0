import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query'
import { say } from '../design/toast.tsx'

export type Change<Sent, Result> = {
  readonly call: (sent: Sent) => Promise<Result>
  /** Closes what asked, or leaves the screen of what is gone, before anything is read again. */
  readonly leave?: (result: Result, sent: Sent) => unknown
  /** All that was read below these keys is read again. */
  readonly changes: readonly QueryKey[]
  readonly done?: (result: Result, sent: Sent) => unknown
  /** The toast at last: `Key revoked`. */
  readonly said?: string | ((result: Result, sent: Sent) => string)
}

/** A call that changes something, with what follows from it on the screens. */
export function useChange<Sent = void, Result = unknown>({ call, leave, changes, done, said }: Change<Sent, Result>) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: call,
    onSuccess: async (result, sent) => {
      await leave?.(result, sent)
      await Promise.all(changes.map((queryKey) => queries.invalidateQueries({ queryKey })))
      await done?.(result, sent)
      if (said !== undefined) say(typeof said === 'string' ? said : said(result, sent))
    },
  })
}
