import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type ApiKey, keysKey, revokeKey } from '../../api/keys.ts'
import { Confirm } from '../../design/confirm.tsx'
import { Bullets } from '../../design/layout.tsx'
import { say } from '../../design/toast.tsx'
import { useAccount } from '../../shell/session.tsx'
import { LastUse } from './last-use.tsx'

type RevokeKeyProps = { readonly apiKey: ApiKey | undefined; readonly onClose: () => void }

/** Asks before a key is revoked, and says what ends with it. */
export function RevokeKey({ apiKey, onClose }: RevokeKeyProps) {
  const account = useAccount()
  const queries = useQueryClient()
  // The dialog names the key also while it closes.
  const [shown, setShown] = useState(apiKey)
  if (apiKey !== undefined && apiKey.id !== shown?.id) setShown(apiKey)
  const revoke = useMutation({
    mutationFn: (id: string) => revokeKey(id),
    onSuccess: async ({ name }) => {
      onClose()
      await queries.invalidateQueries({ queryKey: keysKey(account) })
      say(`Key “${name}” revoked`)
    },
  })
  const close = () => {
    revoke.reset()
    onClose()
  }
  return (
    <Confirm
      open={apiKey !== undefined}
      onClose={close}
      title={`Revoke the key “${shown?.name ?? ''}”?`}
      action="Revoke key"
      onConfirm={() => apiKey !== undefined && revoke.mutate(apiKey.id)}
      busy={revoke.isPending}
      error={revoke.error?.message}
    >
      <p>
        <code>{shown?.prefix}…</code> Last used: <LastUse at={shown?.last_used_at ?? null} />.
      </p>
      <Bullets>
        <li>Within two seconds, requests with the key are rejected (401).</li>
        {shown?.scopes.includes('ingest') && <li>MQTT clients that are connected with it lose their connection.</li>}
        <li>Access tokens that were issued for it stop working.</li>
        <li>Data that was acknowledged before is still delivered.</li>
      </Bullets>
      <p>This cannot be undone. To replace the key without a gap, create another one first.</p>
    </Confirm>
  )
}
