import { useSuspenseQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { type Endpoint, endpointQuery } from '../../api/endpoints.ts'
import { useAccount } from '../../shell/session.tsx'

/** The endpoint of the address, for screens below `EndpointPage`, which has loaded it. */
export function useEndpoint(): { readonly account: string; readonly endpoint: Endpoint } {
  const account = useAccount()
  const { endpoint: id } = useParams({ from: '/signed-in/in/$account/endpoints/$endpoint' })
  const { data } = useSuspenseQuery(endpointQuery(account, id))
  return { account, endpoint: data }
}
