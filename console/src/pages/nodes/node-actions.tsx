import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { type Node, nodesKey, removeNode, revokeCredential } from '../../api/nodes.ts'
import { Button } from '../../design/button.tsx'
import { Confirm } from '../../design/confirm.tsx'
import { formatBytes } from '../../design/format.ts'
import { Bullets } from '../../design/layout.tsx'
import { say } from '../../design/toast.tsx'
import { CheckboxField } from '../../design/toggle-field.tsx'
import { shortId } from './node-state.tsx'

/** Actions of an operator on a machine that is lost, or that somebody else has. */
export function NodeActions({ node }: { readonly node: Node }) {
  const [asked, setAsked] = useState<'revoke' | 'remove'>()
  const close = () => setAsked(undefined)
  return (
    <>
      <Button onClick={() => setAsked('revoke')}>Revoke credential</Button>
      <Button onClick={() => setAsked('remove')}>Remove node</Button>
      <Revoke node={node} open={asked === 'revoke'} onClose={close} />
      <Remove node={node} open={asked === 'remove'} onClose={close} />
    </>
  )
}

type AskProps = { readonly node: Node; readonly open: boolean; readonly onClose: () => void }

function Revoke({ node, open, onClose }: AskProps) {
  const queries = useQueryClient()
  const [release, setRelease] = useState(false)
  const revoke = useMutation({
    mutationFn: () => revokeCredential(node.id, release),
    onSuccess: async () => {
      onClose()
      await queries.invalidateQueries({ queryKey: nodesKey })
      say('Credential revoked')
    },
  })
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title={`Revoke the credential of node ${shortId(node.id)}?`}
      action="Revoke credential"
      onConfirm={() => revoke.mutate()}
      call={revoke}
    >
      <Bullets>
        <li>Control refuses the node at once, and its addresses leave DNS.</li>
        <li>
          It registers again by itself if it has a join token that is active, or the join secret: revoke the token first to keep
          it out.
        </li>
        <li>What it accepted stays on its disk.</li>
      </Bullets>
      <CheckboxField
        label="Also release its id"
        hint="For a machine whose disk was lost: a new one may join under the same id."
        checked={release}
        onChange={setRelease}
      />
    </Confirm>
  )
}

function Remove({ node, open, onClose }: AskProps) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const remove = useMutation({
    mutationFn: (force: boolean) => removeNode(node.id, force),
    onSuccess: async () => {
      onClose()
      await navigate({ to: '/operate/nodes' })
      await queries.invalidateQueries({ queryKey: nodesKey })
      say('Node removed')
    },
  })
  // Control refuses it first where data would be abandoned, and says what.
  const obstacle = remove.error instanceof ApiError && remove.error.status === 409
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title={`Remove node ${shortId(node.id)}?`}
      action={obstacle ? 'Remove it anyway' : 'Remove node'}
      onConfirm={() => remove.mutate(obstacle)}
      call={remove}
      {...(obstacle ? { typed: shortId(node.id) } : {})}
    >
      <Bullets>
        <li>Drains no longer wait for it, and control refuses its credential.</li>
        <li>
          Its disk is not touched. It holds {formatBytes(node.segments.bytes)} that are not in a bucket
          {node.segments.bytes > 0 && ': another machine can adopt them with inlet node --adopt'}.
        </li>
      </Bullets>
    </Confirm>
  )
}
