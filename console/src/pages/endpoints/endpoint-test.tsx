import { useMutation } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { FlaskConical } from 'lucide-react'
import { useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { sendTestEvent } from '../../api/endpoints.ts'
import { Button } from '../../design/button.tsx'
import { Callout } from '../../design/callout.tsx'
import { TextArea } from '../../design/field.tsx'
import { Form } from '../../design/form.tsx'
import { Card, Section } from '../../design/layout.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useMay } from '../../shell/session.tsx'
import style from './endpoints.module.css'
import { FollowedEvent } from './followed-event.tsx'
import { markOf, type SentEvent } from './test-search.ts'
import { useEndpoint } from './use-endpoint.ts'

/** Sends one record as a client would, and follows it to its row in Parquet. */
export function EndpointTest() {
  const { account, endpoint } = useEndpoint()
  const mayChange = useMay('member')
  const navigate = useNavigate()
  const sent = useSearch({ from: '/signed-in/in/$account/endpoints/$endpoint/test' })
  const [record, setRecord] = useState('')
  const send = useMutation({
    mutationFn: () => sendTestEvent(endpoint.id, record === '' ? undefined : record),
    onSuccess: ({ node_id, segment_seq, record: text, acknowledged_after_ms, sent_at }) =>
      navigate({
        to: '/in/$account/endpoints/$endpoint/test',
        params: { account, endpoint: endpoint.id },
        search: { node: node_id, segment: segment_seq, mark: markOf(text), after: acknowledged_after_ms, at: sent_at },
        replace: true,
      }),
  })
  if (!mayChange)
    return <Callout title="Only members and owners send events">Ask an owner of the account for another role.</Callout>
  return (
    <div className={style.stack}>
      <Section
        title="Test event"
        about="It takes the way of every record: through the address of the endpoint, to the disk, to your bucket."
      >
        <Card>
          <Form className={style.form} onSubmit={() => send.mutate()}>
            <TextArea
              label="Record"
              value={record}
              onChange={setRecord}
              rows={3}
              placeholder='{"event":"inlet.test_event", …}'
              hint="One record, mostly JSON. Left empty, Inlet makes one with an id of its own."
              error={send.error instanceof ApiError ? send.error.fieldError('record') : undefined}
            />
            {send.isError && <Failure error={send.error} />}
            <div>
              <Button type="submit" look="primary" icon={<FlaskConical aria-hidden="true" />} busy={send.isPending}>
                Send test event
              </Button>
            </div>
          </Form>
        </Card>
      </Section>
      {isSent(sent) && <FollowedEvent key={`${sent.segment} ${sent.mark}`} account={account} endpoint={endpoint} sent={sent} />}
    </div>
  )
}

function isSent(search: Partial<SentEvent>): search is SentEvent {
  return search.node !== undefined
}
