import { useState } from 'react'
import { type ApiKey, keysKey, type Revocation, revokeKey } from '../../api/keys.ts'
import { Confirm } from '../../design/confirm.tsx'
import { SelectField } from '../../design/field.tsx'
import { Bullets } from '../../design/layout.tsx'
import { useAccount } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import { LastUse } from './last-use.tsx'

type RevokeKeyProps = { readonly apiKey: ApiKey | undefined; readonly onClose: () => void }

type Reason = 'replaced' | 'leaked'

const reasons = [
  { value: 'replaced', label: 'It was replaced, or is not needed any more' },
  { value: 'leaked', label: 'It leaked: end everything at once' },
] as const

/** Asks before a key is revoked, and says what ends with it. A key that was revoked before can only have leaked. */
export function RevokeKey({ apiKey, onClose }: RevokeKeyProps) {
  const account = useAccount()
  const [chosen, setChosen] = useState<Reason>('replaced')
  // The dialog names the key also while it closes.
  const [shown, setShown] = useState(apiKey)
  if (apiKey !== undefined && apiKey !== shown) {
    setShown(apiKey)
    setChosen('replaced')
  }
  const isRevoked = shown !== undefined && shown.revoked_at !== null
  const reason = isRevoked ? 'leaked' : chosen
  const revoke = useChange({
    call: (revocation: Revocation) => revokeKey(revocation),
    leave: onClose,
    changes: [keysKey(account)],
    said: ({ name }) => (isRevoked ? `What “${name}” opened has ended` : `Key “${name}” revoked`),
  })
  return (
    <Confirm
      open={apiKey !== undefined}
      onClose={onClose}
      title={isRevoked ? `End everything that the key “${shown.name}” opened?` : `Revoke the key “${shown?.name ?? ''}”?`}
      action={isRevoked ? 'End it' : 'Revoke key'}
      onConfirm={() => apiKey !== undefined && revoke.mutate({ id: apiKey.id, now: reason === 'leaked' })}
      call={revoke}
    >
      <p>
        <code>{shown?.prefix}…</code> Last used: <LastUse at={shown?.last_used_at ?? null} />.
      </p>
      {!isRevoked && <SelectField label="Why" value={reason} choices={reasons} onChange={setChosen} />}
      <Consequences reason={reason} takesData={shown?.scopes.includes('ingest') === true} />
      <p>This cannot be undone. {reason === 'replaced' && 'To replace the key without a gap, create another one first.'}</p>
    </Confirm>
  )
}

function Consequences({ reason, takesData }: { readonly reason: Reason; readonly takesData: boolean }) {
  const isLeak = reason === 'leaked'
  return (
    <Bullets>
      <li>Within two seconds, requests with the key are rejected (401).</li>
      {takesData && (
        <li>
          {isLeak
            ? 'MQTT clients that are connected with it lose their connection.'
            : 'MQTT clients that are connected with it stay connected until they next connect.'}
        </li>
      )}
      <li>
        {isLeak
          ? 'Access tokens that were issued for it stop working.'
          : 'Access tokens that were issued for it work until they expire, 15 minutes at most.'}
      </li>
      <li>Data that was acknowledged before is still delivered.</li>
    </Bullets>
  )
}
