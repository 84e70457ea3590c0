import { useQuery } from '@tanstack/react-query'
import { type Endpoint, endpointQuery } from '../../api/endpoints.ts'
import { confirmLoss, type Loss, openLossesQuery } from '../../api/losses.ts'
import { Callout } from '../../design/callout.tsx'
import { formatCount } from '../../design/format.ts'
import { Bullets } from '../../design/layout.tsx'
import { Time } from '../../design/time.tsx'
import { AskingButton } from '../../shell/asking-button.tsx'
import { useMay } from '../../shell/session.tsx'

type EndpointLossesProps = { readonly account: string; readonly endpoint: Endpoint }

/** Losses with nodes that lost their place, until somebody of the account confirms it. Nothing while there is none. */
export function EndpointLosses({ account, endpoint }: EndpointLossesProps) {
  const losses = useQuery(openLossesQuery(account, endpoint.id))
  return losses.data?.items.map((loss) => <OpenLoss key={loss.id} account={account} loss={loss} />)
}

const happened: Readonly<Record<Loss['cause'], string>> = {
  node_removed: 'was removed',
  node_released: 'lost its id, which was released',
  node_adopted: 'had its log adopted by another machine',
  node_taken_over: 'was lost, and another node took over its copies',
  left_on_disk: 'said what it holds',
}

function OpenLoss({ account, loss }: { readonly account: string; readonly loss: Loss }) {
  const {
    node_id,
    node_name,
    records,
    recorded_at,
    summary,
    first_segment_seq,
    recovered,
    is_node_back,
    searched_at,
    search_problem,
    cause,
  } = loss
  const mayConfirm = useMay('member')
  return (
    <Callout
      kind="bad"
      title={records === 0 ? 'Records may be lost with a node' : 'Records were lost with a node'}
      action={mayConfirm && <ConfirmLoss account={account} loss={loss} />}
    >
      <p>
        {cause === 'left_on_disk' ? 'The former machine of node' : 'Node'}{' '}
        <code title={node_id}>{node_name ?? node_id.slice(0, 8)}</code> {happened[cause]} <Time at={recorded_at} />. It had not
        delivered {summary}
        {first_segment_seq !== null && `: segment ${first_segment_seq} and later ones`}.
      </p>
      <p>
        {is_node_back
          ? `${cause === 'node_taken_over' ? 'That node delivers what has copies' : 'The node is back, and delivers what it still has'}: ${formatCount(recovered.records)} records so far.`
          : cause === 'left_on_disk'
            ? 'Another machine has its place. The operator can bring in what is only on its disk.'
            : 'If its disk is found, inlet node --adopt delivers them. Senders that kept them can send them again.'}
        {search_problem !== null
          ? ` They may be in the bucket: ${search_problem}${searched_at === null ? '; control tries again' : ''}.`
          : searched_at === null && ' Control still has to look for them in the bucket.'}
        {first_segment_seq === null &&
          ' The node did not say which segments it held, so Inlet cannot tell when they are delivered: confirm the loss then.'}
      </p>
    </Callout>
  )
}

function ConfirmLoss({ account, loss: { id, endpoint_id } }: { readonly account: string; readonly loss: Loss }) {
  const changes = [openLossesQuery(account, endpoint_id).queryKey, endpointQuery(account, endpoint_id).queryKey]
  return (
    <AskingButton
      title="Confirm this loss?"
      action="Confirm loss"
      change={{ call: () => confirmLoss(id), changes, said: 'Loss confirmed' }}
    >
      <Bullets>
        <li>The status of the endpoint no longer names it. It stays in the list of losses, and in the audit trail.</li>
        <li>If the disk comes back all the same, its records are delivered.</li>
      </Bullets>
    </AskingButton>
  )
}
