import { Dialog as BaseDialog } from '@base-ui/react/dialog'
import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { IconButton } from './button.tsx'
import style from './dialog.module.css'

type DialogProps = {
  readonly open: boolean
  readonly onClose: () => void
  readonly title: string
  /** One sentence below the title. */
  readonly about?: ReactNode
  readonly children: ReactNode
  /** Buttons, the main one last. */
  readonly actions?: ReactNode
  readonly wide?: boolean
}

/** Keeps the focus inside, and gives it back when it closes. Escape closes it. */
export function Dialog({ open, onClose, title, about, children, actions, wide = false }: DialogProps) {
  return (
    <BaseDialog.Root open={open} onOpenChange={(next) => next || onClose()}>
      <BaseDialog.Portal>
        <BaseDialog.Backdrop className={style.backdrop} />
        <BaseDialog.Popup className={style.popup} data-wide={wide || undefined}>
          <header className={style.header}>
            <BaseDialog.Title className={style.title}>{title}</BaseDialog.Title>
            <BaseDialog.Close render={<IconButton label="Close" look="quiet" size="small" />}>
              <X aria-hidden="true" />
            </BaseDialog.Close>
          </header>
          {about !== undefined && <BaseDialog.Description className={style.about}>{about}</BaseDialog.Description>}
          <div className={style.body}>{children}</div>
          {actions !== undefined && <footer className={style.actions}>{actions}</footer>}
        </BaseDialog.Popup>
      </BaseDialog.Portal>
    </BaseDialog.Root>
  )
}
