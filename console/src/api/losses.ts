import { queryOptions } from '@tanstack/react-query'
import { client, forAccount, ok, type Schemas } from './client.ts'
import { slowMs, whileThere } from './intervals.ts'

export type Loss = Schemas['Loss']

const shownMax = 20

/** Losses of an endpoint that nobody has confirmed, the newest first. */
export const openLossesQuery = (account: string, endpoint_id: string) =>
  queryOptions({
    queryKey: [account, 'endpoints', endpoint_id, 'losses'],
    queryFn: () => {
      const query = { endpoint_id, state: 'open', limit: shownMax } as const
      return ok(client.GET('/v1/losses', { params: { query }, headers: forAccount(account) }))
    },
    refetchInterval: whileThere(slowMs),
  })

export function confirmLoss(id: string) {
  return ok(client.POST('/v1/losses/{id}/confirm', { params: { path: { id } } }))
}
